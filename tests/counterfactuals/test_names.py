import re

import pytest

from evenhand.counterfactuals import names_in
from evenhand.counterfactuals.names import other_names, subject_name


def test_names_known_and_found_in_the_texts():
    assert names_in(["John saw Anna-Maria in Rome.", "thomas and Zed"]) == (["John"], ["Anna", "Maria"])


def test_names_learned_from_the_gender_of_the_texts():
    texts = ["here Zed Smith spoke", "here Zoa Smith spoke", "in New York it rained"] * 10 + [
        "here Zed Smith spoke"
    ] * 2
    genders = (["male", "female", "male", "male", "female", "female"] * 5) + ["male"] * 2
    assert names_in(texts, genders) == (["Zed"], ["Zoa"])
    few = names_in(texts[:6], genders[:6])
    assert few == ([], [])  # twice the same gender is chance


def test_names_need_a_gender_each():
    with pytest.raises(ValueError, match="2 texts but 1 genders"):
        names_in(["a", "b"], ["male"])
    with pytest.raises(ValueError, match="'M'"):
        names_in(["a"], ["M"])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Anna Lee is a nurse.", "Anna"),
        ("Dr. Anna Lee is a nurse.", "Anna"),
        ("It rained. Anna slept. John left.", "Anna"),
        ("The book by Anna Lee", None),
        ("J. Anna Lee", None),
        ("Anna Lee spoke to him about his book.", None),
        ("San Anna is a town.", None),
        ("", None),
    ],
)
def test_the_subject_opens_a_sentence_and_agrees_with_the_pronouns(text, name):
    assert subject_name(text, re.compile(r"\b(?:Anna|John)\b"), frozenset(["John"])) == name


def test_a_name_of_both_genders_is_not_drawn():
    assert other_names(["John", "Kim"], ["Anna", "Kim"]) == {"John": ["Anna"], "Anna": ["John"]}
