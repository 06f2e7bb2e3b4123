import pytest

from evenhand.counterfactuals import TokenSwap, identity_tokens
from evenhand.datasets import mentions
from evenhand.datasets.mentions import written


def test_half_of_them_are_abusive_for_every_token_alike():
    found = mentions(identity_tokens(), n=2000)
    assert found.y.mean() == 0.5
    assert found.groups.to_numpy().sum(axis=1).tolist() == [1] * 2000
    shares = [found.y[found.groups[token]].mean() for token in found.groups]
    assert min(shares) > 0.3
    assert max(shares) < 0.7


def test_a_swap_finds_the_token_of_nearly_every_sentence():
    found = mentions(identity_tokens(), n=800)
    mentioned = TokenSwap(identity_tokens()).mentioned(found.texts)
    hit = [token in tokens for token, tokens in zip(found.groups.idxmax(axis=1), mentioned)]
    assert sum(hit) / len(hit) > 0.9


def test_the_draw_is_by_the_seed():
    assert mentions(["gay", "old"], 20, seed=1).texts == mentions(["gay", "old"], 20, seed=1).texts
    assert mentions(["gay", "old"], 20, seed=1).texts != mentions(["gay", "old"], 20, seed=2).texts


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("old", "An old person met old people."),
        ("jewish", "A Jew met Jews."),
        ("lgbt", "An LGBT person met LGBT people."),
    ],
)
def test_the_forms_of_a_token(token, expected):
    assert written("{a} {one} met {several}.", token) == expected


@pytest.mark.parametrize(("tokens", "n"), [([], 3), (["gay"], 0)])
def test_bad_input(tokens, n):
    with pytest.raises(ValueError, match="at least 1"):
        mentions(tokens, n)
