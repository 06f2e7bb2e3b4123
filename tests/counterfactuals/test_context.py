import pytest

from evenhand.counterfactuals.context import left_because, names_people


def reason(text, word, **options):
    start = text.index(word)
    return left_because(text, start, start + len(word), word.lower(), **{"plural": False, "insults": False, **options})


@pytest.mark.parametrize("word", ["people", "teachers", "drummer", "pianist", "ladies", "musician", "boss's"])
def test_nouns_for_people(word):
    assert names_people(word)


@pytest.mark.parametrize("word", ["paper", "song", "number", "error", "list", "river", "year"])
def test_other_nouns(word):
    assert not names_people(word)


def test_a_vague_word_needs_somebody_it_describes():
    assert reason("an old neighbour", "old") == ""
    assert reason("an old friend", "old") == "idiom"
    assert reason("an old chair", "old") == "no person"
    assert reason("she is blind.", "blind") == ""
    assert reason("you old fool", "old") == ""


def test_an_insult_is_only_left_unless_asked_for():
    assert reason("this is so gay", "gay") == "insult"
    assert reason("this is so gay", "gay", insults=True) == ""
    assert reason("I am gay", "gay") == ""


def test_a_name_is_a_capital_beside_a_capital():
    assert reason("Neil met Claudia Black today", "Black") == "name"
    assert reason("The Black Women of Paris", "Black") == ""
