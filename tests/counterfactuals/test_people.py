import pytest

from evenhand.counterfactuals.people import described, identity_word, listed_people, names_people


@pytest.mark.parametrize("word", ["people", "teachers", "drummer", "pianist", "ladies", "musician", "boss's"])
def test_nouns_for_people(word):
    assert names_people(word)


@pytest.mark.parametrize("word", ["paper", "song", "number", "error", "list", "river", "year"])
def test_other_nouns(word):
    assert not names_people(word)


@pytest.mark.parametrize("word", ["older", "lager", "gender", "German", "screwdriver", "newsletter", "manufacturers"])
def test_words_that_end_like_people(word):
    assert not names_people(word)


def test_the_plural_of_a_people_is_people():
    assert names_people("Germans")
    assert names_people("Romans")


def test_with_a_capital_letter_only_the_list_counts():
    assert listed_people("Nurses")
    assert listed_people("Ladies")
    assert not listed_people("Slater")


def test_identity_words_and_their_plurals():
    assert [word for word in ("Gays", "muslim", "tables") if identity_word(word)] == ["Gays", "muslim"]


@pytest.mark.parametrize(
    "text",
    [
        "a {} piano teacher",
        "the {} community",
        "Kim is {}.",
        "I grew up {} in Ohio",
        "she's {}",
        "they call him {}",
        "he was described as {}",
        "Is the pope {}?",
        "you stupid {}",
        "the poor and {} minorities",
        "nurses, {}, whoever",
        "a {} who sings",
        "a {}-owned shop",
        "straight or {}, come in",
        "anyone here bi or {}?",
        "all the members here are {}",
        "I am anything but {}.",
        "they could not have been {}",
        "the painter is {}",
        "{}",
        "我是{}人",
    ],
)
def test_what_says_that_somebody_is_meant(text):
    assert described(*text.split("{}"))


@pytest.mark.parametrize(
    "text",
    [
        "change the spelling to {}.",
        "without knowledge of {} nobody can",
        "spreading {} western ideas",
        "it is {}.",
        "is that {}?",
        "googling frozen {}, there are",
        "== {} == what",
        "do not call things {}",
        "get your {} crap out",
        "the opening line had become {}, so",
        "everything about it is {}, also",
        "this {} the man said",
    ],
)
def test_what_does_not(text):
    assert not described(*text.split("{}"))
