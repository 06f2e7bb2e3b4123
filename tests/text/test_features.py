import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evenhand.estimators import ERMClassifier
from evenhand.text import TextFeatures, without_blind
from evenhand.variations import Variations


def lengths(texts):
    return np.array([[len(text), text.count("a"), 7.0] for text in texts])


def test_scaled_as_scikit_learn_does():
    texts = ["a", "banana", "cab", "dd"]
    found = TextFeatures(lengths).fit(texts).transform(texts)
    assert found == pytest.approx(StandardScaler().fit_transform(lengths(texts)), abs=1e-6)


def test_a_text_column_and_other_columns_are_one_model():
    frame = pd.DataFrame({"comment": ["a", "bb", "ccc", "dddd"] * 10, "age": range(40)})
    y = (frame["comment"].str.len() > 2).astype(int)
    columns = ColumnTransformer([("text", TextFeatures(lengths), "comment"), ("rest", StandardScaler(), ["age"])])
    model = make_pipeline(columns, ERMClassifier(hidden=(8,), steps=150, random_state=0)).fit(frame, y)
    assert (model.predict(frame) == y).mean() > 0.95


def test_an_encoder_may_give_a_tensor_with_its_graph():
    """As a transformer of one's own does that was not asked under torch.no_grad()."""
    weight = torch.ones(3, requires_grad=True)
    found = TextFeatures(lambda texts: torch.as_tensor(lengths(texts)).float() * weight).fit(["a", "banana"])
    same = TextFeatures(lengths).fit(["a", "banana"])
    np.testing.assert_array_equal(found.transform(["cab"]), same.transform(["cab"]))


def test_bad_encoders():
    with pytest.raises(ValueError, match="one vector for each of 2"):
        TextFeatures(lambda texts: np.zeros((1, 3))).fit(["a", "b"])
    with pytest.raises(ValueError, match="NaN"):
        TextFeatures(lambda texts: np.full((len(texts), 2), np.nan)).fit(["a"])


def test_an_encoder_that_is_no_function_of_texts_says_what_to_give():
    with pytest.raises(TypeError, match="a TfidfVectorizer; give its method transform"):
        TextFeatures(TfidfVectorizer()).fit(["a b"])
    with pytest.raises(TypeError, match="got a int"):
        TextFeatures(3).fit(["a b"])


def test_a_sparse_matrix_is_the_array_it_stands_for():
    texts = ["one two", "two three", "three"]
    counts = CountVectorizer().fit(texts)
    found = TextFeatures(counts.transform).fit(texts).transform(texts)
    assert found == pytest.approx(StandardScaler().fit_transform(counts.transform(texts).toarray()), abs=1e-6)


def test_no_texts_have_no_vectors_whatever_the_encoder_makes_of_an_empty_list():
    features = TextFeatures(HashingVectorizer(n_features=8).transform).fit(["a b", "b c"])
    assert features.transform([]).shape == (0, 8)


def test_blind_means_no_version_differs():
    values = np.zeros((3, 3, 2))
    values[1, 2, 1] = 1e-9
    seen, blind = without_blind(Variations(values, [4, 5, 6]))
    assert (seen.rows.tolist(), blind) == ([5], 2)
    assert without_blind(Variations(np.empty((0, 2, 2)), []))[1] == 0


class Double:
    """Reads "he" and "she" as both."""

    def alike(self, texts):
        rows = [i for i, text in enumerate(texts) if text.split()[0] in ("he", "she")]
        said = [[f"{who} {texts[i].split(' ', 1)[1]}" for who in ("he", "she")] for i in rows]
        return Variations(np.array(said, dtype=object).reshape(-1, 2), rows)


def test_what_is_read_alike_is_the_mean_of_its_forms():
    texts = ["he sang", "a banana", "she sang"]
    features = TextFeatures(lengths, Double()).fit(texts)
    read = features.read(texts)
    assert (features.vectors(texts) == lengths(texts)).all()
    assert (read[[0, 2]] == lengths(["he sang", "she sang"]).mean(axis=0)).all()
    assert (read[1] == lengths(texts)[1]).all()
    assert (features.transform(texts) == features.scaled(read)).all()
    assert clone(features).get_params()["alike"] is not None


def test_versions_that_are_read_alike_are_seen_and_blind_ones_are_not():
    versions = Variations(np.array([["he sang", "she sang"], ["abc", "cba"], ["x", "xyz"]], dtype=object), [4, 5, 6])
    for alike in (None, Double()):
        seen, blind = TextFeatures(lengths, alike).fit(["a", "bb"]).seen(versions)
        assert (seen.rows.tolist(), blind) == ([4, 6], 1)
        assert (seen.values[0, 0] == seen.values[0, 1]).all() == (alike is not None)
    assert TextFeatures(lengths).fit(["a"]).seen(Variations(np.array([["abc", "cba"]], dtype=object), [0]))[1] == 1
