"""What the guide to texts promises in words."""

from pathlib import Path

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "text.md").read_text(encoding="utf-8")


def test_a_lexical_swap_is_not_called_causal():
    assert "A lexical swap is not a causal counterfactual" in GUIDE
    from evenhand.counterfactuals import GenderSwap, TokenSwap

    for swap in (GenderSwap, TokenSwap):
        assert "not a causal counterfactual" in swap.__doc__
