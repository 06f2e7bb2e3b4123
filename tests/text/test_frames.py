import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer

from evenhand import certify
from evenhand.counterfactuals import TokenSwap, swap_column
from evenhand.datasets import templates
from evenhand.evaluation import balanced_accuracy, ctf_std
from evenhand.output_distances import total_variation
from evenhand.text import TextClassifier, save_text
from evenhand.text.frames import FrameFeatures

COUNTS = HashingVectorizer(n_features=96, norm="l2")
COMMENTS = templates(400, seed=0)
TOKENS = list(COMMENTS.groups.columns)
RNG = np.random.default_rng(0)
SPAM = RNG.random(400) < 0.5  # what the text does not say
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(400) < 0.1, np.nan, RNG.integers(18, 90, 400)),
        "comment": COMMENTS.texts,
        "channel": np.where(SPAM, "mail", np.where(RNG.random(400) < 0.1, None, "web")),
        "new": RNG.random(400) < 0.5,
    }
)
Y = np.where(SPAM, 1, COMMENTS.y)
SWAP = TokenSwap(TOKENS, sample=4)
SMALL = {"hidden": (30,), "steps": 120, "lr": 3e-3, "k": 8, "batch_size": 64, "text": "comment"}


def embed(texts):
    return COUNTS.transform(texts).toarray()


@pytest.fixture(scope="module")
def fitted():
    return {
        method: TextClassifier(embed, SWAP, method, rho=1.0, **SMALL).fit(FRAME[:300], Y[:300])
        for method in ("plain", "sensei")
    }


def test_other_columns_are_used_and_versions_are_treated_alike(fitted):
    rest = FRAME[300:]
    versions = swap_column(rest, "comment", TokenSwap(TOKENS))
    without = TextClassifier(embed, SWAP, "plain", **SMALL | {"text": None}).fit(FRAME["comment"][:300], Y[:300])
    alone = balanced_accuracy(Y[300:], without.predict(rest["comment"]))
    for model in fitted.values():
        assert balanced_accuracy(Y[300:], model.predict(rest)) > alone + 0.05
    ctf = {name: ctf_std(versions.map(lambda x, m=m: m.predict_proba(x)[:, 1])) for name, m in fitted.items()}
    assert ctf["sensei"] < 0.7 * ctf["plain"]


def test_the_exact_certificate_takes_the_rows_with_their_versions(fitted):
    versions = swap_column(FRAME[300:], "comment", TokenSwap(TOKENS))
    found = {
        name: certify(model.pipeline_, versions, eps=0.0, output_distance=total_variation)
        for name, model in fitted.items()
    }
    p = versions.map(fitted["plain"].pipeline_.predict_proba).values
    worst = 0.5 * np.abs(p - p[:, :1]).sum(axis=-1).max(axis=1).mean()
    assert found["plain"].lower <= worst <= found["plain"].upper
    assert "exact over these versions" in str(found["plain"])
    assert found["sensei"].upper < found["plain"].upper


def test_other_kinds_of_tables_give_the_same(fitted):
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rest = FRAME[300:]
    p = fitted["sensei"].predict_proba(rest)
    for table in (
        polars.DataFrame(rest.astype(object).where(rest.notna(), None).to_dict("list")),
        arrow.table(rest.astype(object).where(rest.notna(), None).to_dict("list")),
    ):
        assert fitted["sensei"].predict_proba(table) == pytest.approx(p, abs=1e-6)
    assert fitted["sensei"].predict_proba(rest[["new", "channel", "comment", "age"]]) == pytest.approx(p, abs=1e-6)
    assert pickle.loads(pickle.dumps(fitted["sensei"])).predict_proba(rest) == pytest.approx(p, abs=1e-6)
    assert clone(fitted["sensei"]).text == "comment"


def test_features_of_missing_and_unknown_values():
    found = FrameFeatures(embed, "comment").fit(FRAME)
    odd = pd.DataFrame({"age": [None], "comment": ["x"], "channel": ["pigeon"], "new": [True], "more": [1]})
    x = found.transform(odd)
    assert x.shape == (1, 96 + 1 + 3 + 2)
    assert np.isfinite(x).all()


def test_no_row_lies_far_beyond_those_of_training():
    frame = FRAME.assign(channel=["rare", *["often"] * 399])
    found = FrameFeatures(embed, "comment").fit(frame)
    oldest = found.transform(frame.assign(age=frame["age"].max()))
    assert (found.transform(frame.assign(age=1e12)) == oldest).all()
    assert (found.transform(frame.assign(age=np.inf)) == oldest).all()
    assert np.abs(found.transform(frame)[0, -4:]).max() <= 10  # a kind that one row in 400 has
    many = FRAME.assign(channel=[f"kind {i % 50}" for i in range(400)])
    grouped = FrameFeatures(embed, "comment").fit(many)
    assert len(grouped.kinds_["channel"]) == 30
    unknown = grouped.vectors(many.assign(channel="never seen"))[:, 97:127]
    assert unknown.sum(axis=1).tolist() == [1] * 400  # with the other rare ones


def test_what_gives_a_sensitive_attribute_away_counts_less():
    sex = np.where(FRAME["age"].fillna(50) > 54, "old", "young")
    options = SMALL | {"steps": 5, "rho": 0.3}
    model = TextClassifier(embed, None, **options).fit(FRAME, Y, {"group": sex})
    assert [one.name for one in model.levels_] == ["group"]
    factor = model.features_.shrinkage_
    along = model.levels_[0].directions[:, 0]
    assert np.abs(factor(along) @ along) < 0.5
    assert len(model.fair_metric_.directions.T) == 1
    with pytest.raises(ValueError, match="one value for each of the 400 texts"):
        TextClassifier(embed, None, **options).fit(FRAME, Y, {"group": sex[:5]})


def test_what_is_wrong_is_said(fitted, tmp_path):
    model = fitted["sensei"]
    with pytest.raises(ValueError, match="there is no column 'comment'; the table has age"):
        model.predict(FRAME[["age"]])
    with pytest.raises(ValueError, match="no column 'age', which the model was trained with"):
        model.predict(FRAME[["comment", "channel", "new"]])
    with pytest.raises(TypeError, match="X must be a table with it; got list"):
        model.predict(["a text"])
    with pytest.raises(TypeError, match="the encoder is a function, which cannot be saved by name"):
        save_text(model, tmp_path / "m.text")
    with pytest.raises(ValueError, match="'age' held numbers in training and holds something else now"):
        model.predict(FRAME.assign(age="old"))
    with pytest.raises(ValueError, match="two columns named 'age'"):
        model.predict(pd.concat([FRAME, FRAME[["age"]]], axis=1))
    with pytest.raises(ValueError, match="mentions are texts without other columns"):
        TextClassifier(embed, SWAP, mentions=(["a"], [1]), **SMALL).fit(FRAME, Y)
    with pytest.raises(ValueError, match="there is no column 'other' of texts"):
        swap_column(FRAME, "other", SWAP)


def test_a_row_is_read_alike_whoever_its_text_is_about_and_its_columns_are_as_they_are(fitted):
    model = fitted["sensei"]
    versions = swap_column(FRAME[:40], "comment", TokenSwap(TOKENS))
    p = versions.map(lambda rows: model.predict_proba(rows)[:, 1]).values
    assert np.ptp(p, axis=1).max() < 1e-6
    moved = FRAME[:40].assign(channel="mail", age=30.0)
    assert np.abs(model.predict_proba(moved) - model.predict_proba(FRAME[:40])).max() > 0.01
    read, stands = model.features_.read(FRAME[:40]), model.features_.vectors(FRAME[:40])
    assert (read[:, 96:] == stands[:, 96:]).all()
    assert (read[:, :96] != stands[:, :96]).any()


@pytest.mark.parametrize("n", [30, 400])
def test_what_people_wrote_in_another_column_is_left_out_and_not_kept(n):
    table = FRAME[:n].assign(note=[f"secret note {i}" for i in range(n)])
    with pytest.warns(UserWarning, match="column 'note' is left out") as warned:
        found = FrameFeatures(embed, "comment").fit(table)
    assert not any("secret" in str(one.message) for one in warned)
    assert "note" not in found.kinds_
    assert "secret" not in str(found.kinds_)
    np.testing.assert_array_equal(found.transform(table), found.transform(FRAME[:n]))


def test_decimals_of_a_database_are_numbers_not_kinds():
    """As kinds most of them were rare, and nothing said so."""
    pay = [None, *(Decimal(int(v)) / 4 for v in RNG.integers(1, 300, 399))]
    table = FRAME.assign(pay=pay)
    found = FrameFeatures(embed, "comment").fit(table)
    assert "pay" in found.numbers_
    same = FrameFeatures(embed, "comment").fit(FRAME.assign(pay=[np.nan, *map(float, pay[1:])]))
    np.testing.assert_array_equal(found.transform(table), same.transform(table))
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(table)
    np.testing.assert_array_equal(FrameFeatures(embed, "comment").fit(arrow).transform(arrow), found.transform(table))
    assert "new" in FrameFeatures(embed, "comment").fit(FRAME.astype({"new": object})).kinds_


def test_dates_are_left_out_with_a_warning_as_on_the_command_line():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 90, 400), "D")
    for when in (days, [day.date() for day in days], days.strftime("%Y-%m-%d")):
        with pytest.warns(UserWarning, match="column 'when' is left out: a date"):
            found = FrameFeatures(embed, "comment").fit(FRAME.assign(when=when))
        assert "when" not in found.kinds_


def test_a_lazy_frame_is_to_be_collected():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"LazyFrame.*collect\(\)"):
        FrameFeatures(embed, "comment").fit(polars.LazyFrame({"comment": ["a"]}))
