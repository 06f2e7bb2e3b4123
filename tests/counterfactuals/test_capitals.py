"""Texts in capitals and without any are read as they would usually be written, letter for letter."""

import pytest

from evenhand.counterfactuals import GenderSwap, names_in
from evenhand.counterfactuals.capitals import as_usual, one_case

NAMES = {"John", "Mary", "Anna", "Will"}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("JOHN SMITH IS A NURSE. HE WORKS.", "John Smith is a nurse. He works."),
        ("john smith is a nurse. he works.", "John Smith is a nurse. He works."),
        ("MARY TEACHES IN ST. MARY PARISH.", "Mary teaches in St. Mary Parish."),
        ("i met mr. jones", "I met Mr. Jones"),
        ("I WILL CALL. WILL YOU?", "I will call. Will you?"),  # a name that is a word
        ("JOHN SMITH is with NATO.", "John Smith is with NATO."),
        ("the ANNA protocol is an acronym", "the ANNA protocol is an acronym"),
        ("John Smith is a nurse.", "John Smith is a nurse."),
        ("", ""),
    ],
)
def test_read_as_usual(text, read):
    assert as_usual(text, NAMES) == read


def test_every_letter_stays_in_its_place():
    for text in ("ANNA WOHNT IN DER STRAẞE İZMİR, ŒUVRES.", "anna lebt in der straße ŉ ǰ", "JOHN İ SMITH IS HERE"):
        assert len(as_usual(text, NAMES)) == len(text)


def test_one_case():
    assert one_case("ALL OF IT IS LOUD")
    assert one_case("none of it is")
    assert not one_case("Some of it is")
    assert not one_case("NASA")  # too short to tell


def test_a_swap_keeps_the_capitals():
    texts = ["MARY LEE IS A NURSE. SHE LIKES HER JOB.", "peter likes his job", "Thomas"]
    swap = GenderSwap(nouns=True, names=names_in(texts))
    loud, quiet = swap.swap(texts[0]), swap.swap(texts[1])
    assert loud in ("PETER LEE IS A NURSE. HE LIKES HIS JOB.", "THOMAS LEE IS A NURSE. HE LIKES HIS JOB.")
    assert quiet == "mary likes her job"
