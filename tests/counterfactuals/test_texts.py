import re

import numpy as np
import pandas as pd
import pytest

from evenhand.counterfactuals.texts import any_of, as_texts, cleaned, like_case, vowel_sound, with_article


@pytest.mark.parametrize(
    ("before", "word", "after"),
    [
        ("is an ", "gay", "is a "),
        ("is a ", "old", "is an "),
        ("An ", "blind", "A "),
        ("IS AN ", "DEAF", "IS A "),
        ("A ", "ASIAN", "AN "),
        ("IS A ", "EUROPEAN", "IS A "),
        ("IS AN ", "LESBIAN", "IS A "),
        ("A ", "LGBT", "An "),
        ("a “", "old", "an “"),
        ("banana ", "old", "banana "),
        ("x" * 40 + " an ", "gay", "x" * 40 + " a "),
    ],
)
def test_articles(before, word, after):
    assert with_article(before, word) == after


def test_vowel_sounds():
    assert [w for w in ("hour", "user", "uncle", "european", "LGBT", "UN", "one", "Asian") if vowel_sound(w)] == [
        "hour",
        "uncle",
        "LGBT",
        "Asian",
    ]


def test_emoji_keep_their_joiners():
    assert cleaned("🏳️‍🌈 g\u200day") == "🏳️‍🌈 gay"


def test_borders_and_case():
    pattern = re.compile(any_of(["a b"]))
    assert [bool(pattern.search(text)) for text in ("a b", "(a-b)", "ca b", "a bc", "a_b", "是a  b人")] == [
        *(True, True, False, False, False, True)
    ]
    assert like_case("she", "HE") == "SHE"


def test_columns():
    assert as_texts(pd.DataFrame({"t": ["a"]})) == ["a"]
    assert as_texts(np.array([["a"], ["b"]])) == ["a", "b"]
    with pytest.raises(TypeError, match="text 1 is None"):
        as_texts(["a", None])


def test_full_width_letters_hide_no_word():
    assert cleaned("\uff27\uff41\uff59 bar") == "Gay bar"
    assert cleaned("\uff11") == "\uff11"  # a digit is no letter
