"""Who is mentioned: names and nouns for one person, and what only looks like one."""

import pytest

from evenhand.counterfactuals.mentions import mentions, says_what, sentences


def said(text, noun=False):
    return [(who.said, who.man) for who in mentions(text) if who.noun == noun]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Anna Lee met Paul in Rome.", [("Anna Lee", False), ("Paul", True)]),
        ("Mrs. Quill's log is lost.", [("Quill", False)]),
        ("The Welsh judge Ynyr Quill sang.", [("Ynyr Quill", None)]),
        ("In Ohio Dr. Zorro Quill sang.", [("Zorro Quill", None)]),
        ("Wisconsin James Quill sang.", [("James Quill", True)]),
        ("Sukrita Paul Quill sang.", [("Paul Quill", None)]),
        ("Then Quill sang of Quilby's work.", [("Quill", None), ("Quilby", None)]),
        ("She hires Lloyd as a cook and praised Quill loudly.", [("Lloyd", None), ("Quill", None)]),
        ("Henry Hall (1859-1927) was a painter.", [("Henry Hall", True)]),
        ("He drove a Skoda car to York for the Guardian.", []),
        ("The Marine Corps won the Quill Prize in May.", []),
        ('The book "Anna Lee Returns" is long.', []),
        ("Grandpa Quill slept.", [("Quill", True)]),
        ("Her husband, Quill, slept.", [("Quill", True)]),
        ("He has a BSc, and his work is known from Iraq, Syria and Yemen.", []),
        ("She works at San Jose State and reads Charlotte's Web aloud.", []),
        ("He was called to King's Bench Chambers, at Eton and Christ Church, Oxford, then as a proud Kenyan.", []),
        ("The airport in Sucre was renamed. He plays for York Rovers. Police said so.", []),
    ],
)
def test_names(text, names):
    assert said(text) == names


@pytest.mark.parametrize(
    ("text", "nouns"),
    [
        ("The young goalkeeper met a wealthy banker.", [("goalkeeper", None), ("banker", None)]),
        ("His father-in-law saw Ann's mother.", [("father", True), ("mother", False)]),
        ("A senior judge and the [occupation] slept.", [("judge", None), ("[occupation]", None)]),
        ("The Frenchman slept.", [("Frenchman", True)]),
        ("Judges slept in the train; the family woke.", []),
    ],
)
def test_nouns(text, nouns):
    assert said(text, noun=True) == nouns


def test_a_noun_begins_with_whose_it_is():
    text = "Ann's old teacher slept."
    (who,) = [each for each in mentions(text) if each.noun]
    assert text[who.start : who.end] == "Ann's old teacher"


def test_what_a_full_name_says_and_who_acts():
    lee, quill = mentions("Anna Lee saw Quill yesterday.")
    assert (lee.given, lee.acts) == (True, True)
    assert (quill.given, quill.acts) == (False, False)


def test_sentences():
    text = "Dr. Lee left. She won! No."
    assert [text[start:end] for start, end in sentences(text)] == ["Dr. Lee left. ", "She won! ", "No."]


@pytest.mark.parametrize("word", ["However", "Captain", "Norwegian", "May", "Nurse"])
def test_a_capital_that_is_no_name(word):
    assert says_what(word, last=word == "May")


@pytest.mark.parametrize("word", ["Anna", "Leilani", "Quill", "May"])
def test_a_capital_that_may_be_a_name(word):
    assert not says_what(word, last=False)
