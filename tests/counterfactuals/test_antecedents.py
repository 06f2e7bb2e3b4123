"""Whether the pronouns of a text can speak of a noun: each rule on a sentence made for it."""

import pytest

from evenhand.counterfactuals.antecedents import FEMALE, MALE, another


def of_another(text, noun, male):
    start = text.index(noun)
    return another(text, start, start + len(noun), male)


@pytest.mark.parametrize(
    ("text", "noun", "male"),
    [
        ("The vet took his bag and left the girl.", "girl", False),  # he is no girl
        ("The girl saw him.", "girl", False),
        ("She hid; the boy did not see her.", "boy", True),
        ("He shoved a man.", "man", True),  # he is somebody already
        ("Her vet praised the woman.", "woman", False),
        ("He says that he saw Kane hit the man, and he fled.", "man", True),  # who acts is no man of a later clause
    ],
)
def test_of_another(text, noun, male):
    assert of_another(text, noun, male)


@pytest.mark.parametrize(
    ("text", "noun", "male"),
    [
        ("The girl left.", "girl", False),  # no pronoun says anything
        ("The girl took her bag.", "girl", False),
        ("He hid. The man left.", "man", True),  # another sentence
        ("He met Mr. Lee. The man left.", "man", True),
        ("He asked a man who lost his way.", "man", True),  # a pronoun after it may be his
        ("They knew him as a quiet man.", "man", True),
        ("He worked as a clerk and an actor.", "actor", True),
        ("He was a cook, then a fireman.", "fireman", True),
        ("In his speech, the chairman laughed.", "chairman", True),
        ("When he came, the man took his hat.", "man", True),
        ("Not only is he the first man, he says.", "man", True),
        ("Her Majesty thanked the man, and his dog.", "man", True),  # Her Majesty is a name
    ],
)
def test_perhaps_the_same(text, noun, male):
    assert not of_another(text, noun, male)


def test_a_title_is_at_an_end_of_no_sentence():
    assert of_another("He and Mr. Lee met a man.", "man", True)


def test_pronouns():
    assert MALE.findall("He gave him his hat himself; the hero") == ["He", "him", "his", "himself"]
    assert FEMALE.findall("She, herself, hers; Her Majesty, her hat, there") == ["She", "herself", "hers", "her"]
