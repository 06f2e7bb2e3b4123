"""What an audit on the command line says beside the search: who is similar, and whether the model says anything."""

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.auditing import audited, same_of_everybody, similar_words
from evenhand.cli.console import UserError
from evenhand.tables.errors import TableError
from evenhand.workflow.foreign import Foreign

N = 300
RNG = np.random.default_rng(0)


def table():
    sex = RNG.choice(["f", "m"], N)
    height = RNG.normal(165, 6, N) + 12 * (sex == "m")
    return pd.DataFrame({"pay": RNG.normal(30, 8, N), "height": height, "sex": sex})


def by_height(frame):
    """Never sees sex, and decides by what gives it away."""
    return 1 / (1 + np.exp(-(frame["height"].to_numpy(float) - 171) / 2))


def test_a_model_that_decides_by_a_proxy():
    said = []
    frame = table()
    found = audited(Foreign("m:f", by_height, ("pay", "height")), frame.head(60), ["sex"], None, 0.01, said.append)
    assert found.numbers["questions"]["sex"]["seen"] is False
    assert "what predicts sex costs nothing" in found.similar
    assert found.numbers["r_low"] > 0.05  # of |p - p'| squared: height is free, and it decides
    assert (found.pairs["d_X"] <= 0.01).all()
    assert said == [] or "% of the difference between people" in said[0]


def test_a_model_that_says_the_same_of_everybody():
    said = []
    constant = Foreign("m:c", lambda frame: np.full(len(frame), 0.4), ("pay", "height"))
    found = audited(constant, table().head(40), ["sex"], False, 0.01, said.append)
    assert any("says nearly the same of everybody" in words for words in said)
    assert found.numbers["r_low"] == 0

    class Spread:
        schema = None

        def probabilities(self, frame):
            p = frame["p"].to_numpy()
            return np.stack([1 - p, p], 1)

    for width, collapsed in ((0.001, True), (0.2, False)):
        frame = pd.DataFrame({"p": 0.5 + width * RNG.random(200)})
        assert (same_of_everybody(Spread(), frame) is not None) == collapsed


def test_a_metric_that_makes_everybody_alike_is_refused():
    frame = table()[["height", "sex"]].head(80)
    model = Foreign("m:h", by_height, ("height",))
    with pytest.raises(TableError, match="makes nearly everybody alike"):
        audited(model, frame, ["sex"], True, 0.01, lambda text: None)


def test_what_must_be_said():
    with pytest.raises(UserError, match="add --sensitive"):
        audited(Foreign("m:f", by_height), table().head(40), None, None, 0.01, lambda text: None)


def test_who_is_similar_in_words():
    assert similar_words(["sex"], ["race"], 2) == (
        "Similar: sex costs nothing; what predicts race costs nothing; other differences are measured in standard "
        "deviations."
    )
    assert "every difference counts" in similar_words([], [], 0)


def test_a_foreign_regressor_in_its_own_units():
    """pay = 3 height: within eps = 0 only what predicts sex is free, and the predictions move as height does."""
    frame = table()
    euros = Foreign("m:e", lambda given: 3 * given["height"].to_numpy(float), ("height", "sex"), quantities=True)
    found = audited(euros, frame.head(100), ["sex"], None, 0.01, [].append)
    assert found.quantities
    # sex is free and not used; 3 * height moves by at most 3 sd sqrt(eps) on average: R = 9 var eps
    expected = 9 * frame["height"].head(100).var(ddof=0) * 0.01
    assert found.numbers["r_low"] == pytest.approx(expected, rel=0.02)
    assert found.numbers["questions"]["sex"]["share"] == 0
    paid = Foreign("m:p", lambda given: 100.0 * (given["sex"] == "m"), ("height", "sex"), quantities=True)
    found = audited(paid, frame.head(100), ["sex"], None, 0.01, [].append)
    assert found.numbers["questions"]["sex"]["share"] == 1  # everybody's by 100
