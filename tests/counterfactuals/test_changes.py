import pytest

from evenhand.counterfactuals import changes
from evenhand.counterfactuals.changes import changed_places, changed_words


@pytest.mark.parametrize(
    ("text", "version", "words"),
    [
        ("my gay friend", "my deaf friend", "deaf"),
        ("straight men, gay men", "gay men, gay men", "gay"),  # the text has the word already
        ("I know a lesbian and a gay man.", "I know a gay and a gay man.", "gay"),
        ("==muslim== is", "==christian== is", "christian"),
        ("gay/straight", "deaf/deaf", "deaf/deaf"),
        ("A gay man and an old one", "An old man and a gay one", "old gay"),
        ("He likes his dog", "She likes her dog", "She her"),
        ("lesbians sing", "Deaf people sing", "Deaf people"),
        ("A gay man", "A man", "without gay"),
        ("穆斯林来了", "基督徒来了", "基督徒"),
        ("the same", "the same", ""),
        ("", "gay", "gay"),
    ],
)
def test_what_was_changed_is_named(text, version, words):
    assert changed_words(text, version) == words


def test_places_are_those_of_the_words():
    text, version = "A gay man, a gay dog.", "An old man, a gay dog."
    assert [(text[slice(*ours)], version[slice(*theirs)]) for ours, theirs in changed_places(text, version)] == [
        ("A gay", "An old")
    ]
    left, right = changed_places("so gay it is", "so it is")[0]
    assert ("so gay it is"[slice(*left)], right) == ("gay", (3, 3))


def test_a_long_text_does_not_take_long():
    words = [f"word{i % 50}" for i in range(4000)]
    swapped = [word if i % 400 else "deaf" for i, word in enumerate(words)]
    assert changed_words(" ".join(words), " ".join(swapped)) == "deaf"


def test_long_texts_of_repeated_words_are_compared_word_by_word(monkeypatch):
    text = "She is a nurse. " * 300
    version = "He is a nurse. " + text[16:-16] + "She is no nurse. "
    monkeypatch.setattr(changes, "SequenceMatcher", None)  # whose time is the square of their length
    assert changed_words(text, version) == "He no"
    assert len(changed_places(text, version)) == 2
