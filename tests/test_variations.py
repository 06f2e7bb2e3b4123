"""Variations: shapes checked, map applied to all versions at once, rows kept."""

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenhand.variations import Variations


def test_map_is_f_of_each_version():
    values = np.arange(24.0).reshape(4, 3, 2)
    mapped = Variations(values, [1, 4, 5, 9]).map(lambda x: x @ np.array([1.0, -2.0]))
    np.testing.assert_array_equal(mapped.values, values[..., 0] - 2 * values[..., 1])
    np.testing.assert_array_equal(mapped.rows, [1, 4, 5, 9])


def test_map_gets_everything_in_one_call():
    seen = []
    Variations(np.zeros((4, 3, 2)), range(4)).map(lambda x: seen.append(x.shape) or x)
    assert seen == [(12, 2)]


def test_texts_are_given_as_a_list_and_kept_as_objects():
    texts = Variations([["a", "a much longer text"], ["b", "c"]], [0, 1])
    assert texts.values.dtype == object
    assert texts.flat() == ["a", "a much longer text", "b", "c"]
    assert texts.map(lambda ts: [t.upper() for t in ts]).values.tolist() == [["A", "A MUCH LONGER TEXT"], ["B", "C"]]
    fixed = Variations(np.array([["a", "b"]]), [0])
    assert fixed.map(lambda ts: [isinstance(ts, list)] * 2).values.all()


def test_map_takes_tensors_with_gradients():
    x = torch.ones(6, 2, requires_grad=True)
    mapped = Variations(np.zeros((3, 2, 2)), range(3)).map(lambda _: x * 2)
    assert mapped.values.shape == (3, 2, 2)
    assert isinstance(mapped.values, np.ndarray)


def test_map_of_nobody_does_not_call_f():
    def never(_):
        raise AssertionError

    assert Variations(np.empty((0, 3, 5)), []).map(never).values.shape == (0, 3)


@pytest.mark.parametrize("result", [np.zeros(5), np.zeros((3, 2)), np.float64(1.0)])
def test_map_rejects_results_of_another_length(result):
    with pytest.raises(ValueError, match="each of the 6 versions"):
        Variations(np.zeros((3, 2, 4)), range(3)).map(lambda _: result)


@pytest.mark.parametrize(
    ("values", "rows", "message"),
    [
        (np.zeros(3), [0, 1, 2], r"shape \(3,\)"),
        (np.zeros((3, 0)), [0, 1, 2], "at least one version"),
        (np.zeros((3, 2)), [0, 1], "3 individuals but rows names 2"),
        (np.zeros((2, 2)), [0, -1], "negative"),
        (np.zeros((2, 2)), [4, 4], "4 comes more than once"),
        (np.zeros((2, 2)), [0.0, 1.0], "row numbers, got float64"),
        (np.zeros((2, 2)), [[0], [1]], "row numbers"),
        ([["a", "b"], ["c"]], [0, 1], "ragged"),
        ([[1, 2], [3]], [0, 1], "ragged"),
    ],
)
def test_wrong_shapes_are_named(values, rows, message):
    with pytest.raises(ValueError, match=message):
        Variations(values, rows)


def test_frozen_and_printed():
    v = Variations(np.zeros((2, 3, 4)), [0, 1])
    assert repr(v) == "Variations of 2 individuals x 3 versions x 4"
    assert len(v) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        v.rows = np.zeros(2)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_like_gives_frames_with_names_and_types(frame):
    like = frame({"age": [1], "job": ["x"], "old": [True], "score": [0.5]})[:0]
    values = np.array([[[30, "cook", True, 0.25], [31, "baker", False, 0.5]]], dtype=object)
    v = Variations(values, [0], like)
    flat = v.flat()
    assert isinstance(flat, frame)
    assert list(flat.dtypes) == list(like.dtypes)
    assert list(flat["age"]) == [30, 31]
    assert list(flat["job"]) == ["cook", "baker"]
    assert v.columns == ("age", "job", "old", "score")
    assert v.versions(1).map(lambda f: f["score"]).values.tolist() == [[0.5]]
    with pytest.raises(ValueError, match="like has 4 columns"):
        Variations(values[..., :3], [0], like)


def test_versions_and_original():
    v = Variations(np.arange(12).reshape(2, 3, 2), [5, 6])
    np.testing.assert_array_equal(v.original, [[0, 1], [6, 7]])
    np.testing.assert_array_equal(v.versions(2, 0).values[0], [[4, 5], [0, 1]])
    np.testing.assert_array_equal(v.versions(2, 0).rows, [5, 6])
    for wrong in [(3,), (-1,), ()]:
        with pytest.raises(ValueError, match="numbered 0 to 2"):
            v.versions(*wrong)


@given(st.data())
def test_select_belongs_to_the_selected_rows(data):
    """If version 0 of individual r is x[r], then after select(rows) version 0 of individual j is x[rows][j]."""
    n = data.draw(st.integers(1, 12))
    x = np.arange(n) * 10
    has = np.array(data.draw(st.lists(st.integers(0, n - 1), unique=True)), dtype=int)
    v = Variations(np.stack([x[has], x[has] + 1], axis=1), has)
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1))), dtype=int)
    chosen = v.select(rows)
    np.testing.assert_array_equal(chosen.original, x[rows][chosen.rows])
    assert len(chosen) == np.isin(rows, has).sum()
    mask = np.isin(np.arange(n), rows)
    np.testing.assert_array_equal(v.select(mask).original, x[mask][v.select(mask).rows])


def test_versions_of_every_row_are_an_array_in_the_order_of_the_rows():
    values = np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_array_equal(np.asarray(Variations(values, rows=[2, 0, 1])), values[[1, 2, 0]])
    with pytest.raises(ValueError, match="only Variations of every row"):
        np.asarray(Variations(values, rows=[0, 1, 5]))


def test_tensors_without_a_type_of_numpy_keep_their_values():
    values = torch.rand(3, 2, 4, requires_grad=True).bfloat16()
    held = Variations(values, rows=range(3)).values
    assert held.dtype == np.float32
    assert torch.equal(torch.from_numpy(held), values.float())
