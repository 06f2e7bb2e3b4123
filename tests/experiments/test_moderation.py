"""Masking, the alternative without any tool, with an encoder of three numbers."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from evenhand.counterfactuals import TokenSwap

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def moderation(monkeypatch):
    pytest.importorskip("sentence_transformers")
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("moderation")


def test_every_token_that_would_be_swapped_is_one_word(moderation):
    swap = TokenSwap(["gay", "muslim", "asian"])
    texts = ["An Asian man met Muslims in a gay bar.", "Nobody.", "You are gay, she is a Muslim."]
    assert moderation.masked(swap, texts) == [
        "A human man met human in a gay bar.",
        "Nobody.",
        "You are gay, she is a human.",
    ]


def test_versions_with_known_tokens_are_the_same_text(moderation):
    known, everybody = ["gay", "muslim"], TokenSwap(["gay", "muslim", "deaf"])
    versions = everybody(["A gay teacher sings."]).values[0].tolist()
    seen = moderation.masked(TokenSwap(known), versions)
    assert seen[0] == seen[1] == "A human teacher sings."
    assert seen[2] == "A deaf teacher sings."  # unknown, so nobody masks it


def test_the_blind_model_reads_masked_texts(moderation, monkeypatch):
    """Its probabilities are the same for all known tokens; the plain model's are not."""
    rng = np.random.default_rng(0)
    people = rng.permutation(["gay", "straight", "black", "white"] * 30)
    texts = [f"A {who} man {verb} number {i}." for i, who in enumerate(people) for verb in ("sings", "swears")]
    y = np.array([0, 1] * len(people))
    comments = moderation.Comments(texts, y, None)
    monkeypatch.setattr(moderation, "TOKENS", ["gay", "straight", "black", "white"])

    def embed(some):
        return np.array([[float("swears" in t), float("gay" in t), float("black" in t), len(t) / 50] for t in some])

    said = ["A gay man swears.", "A straight man swears.", "A black man swears.", "A white man swears."]
    train, _, known = moderation.split(comments, 0)
    mine = [text for text in said if text.split()[1] in known]
    less = {"hidden": (8,), "steps": 30, "batch_size": 32}
    blind, plain = (moderation.fitted(m, comments, 0, embed, set(texts), less) for m in ("Blind", "Baseline"))
    assert len(train) == 168
    assert len(mine) == 2
    assert np.ptp(blind.predict_proba(mine)[:, 1]) == 0 < np.ptp(plain.predict_proba(mine)[:, 1])
