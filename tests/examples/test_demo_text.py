"""The text demo, with counted words in the place of an encoder."""

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer


def test_the_demo_runs_and_shows_the_order_of_the_methods(load, capsys):
    counts = HashingVectorizer(n_features=128, norm="l2")
    scores = load("demo_text").main(n=300, steps=80, hidden=50, embed=lambda t: counts.transform(t).toarray())
    printed = capsys.readouterr().out
    assert "over 10 tokens, 8 known in training" in printed
    assert "% toxic" in printed
    assert "versions" in printed  # the certificate
    assert set(scores) == {"plain", "clp", "sensr", "sensei"}
    for score in scores.values():
        assert all(np.isfinite(value) for value in score.values())
    assert scores["sensei"]["CTF"] < scores["plain"]["CTF"]
    assert scores["clp"]["CTF"] < scores["plain"]["CTF"]
