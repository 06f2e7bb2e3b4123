import numpy as np
import pytest

from evenhand.counterfactuals import TokenSwap
from evenhand.datasets import templates


def test_shapes_and_seed():
    comments = templates(n=300, seed=3)
    assert len(comments.texts) == len(comments.y) == len(comments.groups) == 300
    assert comments.y.mean() == 0.5
    assert templates(n=300, seed=3).texts == comments.texts
    assert templates(n=300, seed=4).texts != comments.texts


def test_groups_are_the_tokens_of_the_text():
    comments = templates(n=300)
    mentioned = TokenSwap(list(comments.groups.columns)).mentioned(comments.texts)
    for i, tokens in enumerate(mentioned):
        assert set(comments.groups.columns[comments.groups.iloc[i]]) == tokens
    share = comments.groups.any(axis=1).mean()
    assert 0.8 < share < 0.97


@pytest.mark.parametrize("bias", [0.5, 0.8])
def test_the_bias_is_what_is_asked(bias):
    comments = templates(n=8000, bias=bias)
    abused = comments.groups[["gay", "black", "muslim", "blind", "african american"]].any(axis=1).to_numpy()
    some = comments.groups.any(axis=1).to_numpy()
    assert np.mean(comments.y[abused & some]) == pytest.approx(bias, abs=0.03)


@pytest.mark.parametrize("options", [{"n": 0}, {"bias": 1.5}])
def test_bad_input(options):
    with pytest.raises(ValueError, match="n must be"):
        templates(**options)
