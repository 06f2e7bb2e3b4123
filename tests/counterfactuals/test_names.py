import re

import pytest

from evenhand.counterfactuals.gender import GenderSwap
from evenhand.counterfactuals.names import subject_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Anna Lee is a nurse.", "Anna"),
        ("Dr. Anna Lee is a nurse.", "Anna"),
        ("It rained. Anna slept. John left. She woke.", "Anna"),
        ("The book by Anna Lee", None),
        ("J. Anna Lee", None),
        ("Anna Lee spoke to him about his book.", None),
        ("San Anna is a town.", None),
        ("Anna, Texas is a town.", None),
        ("Anna, NC based.", None),
        ("Anna, New England's best nurse.", None),
        ("Anna, Johns Hopkins nurse, sold her car.", "Anna"),
        ("John was the son of Anna John and his dog.", None),  # a surname
        ("Prof. John hid his notes.", None),
        ("John - Luc Lee hid his notes.", None),
        ("A man called D'John hid his notes.", None),
        ("It was Jerome K. John who hid his notes.", None),
        ("They met John and Mary Lee at his house.", None),  # two people
        ("It is a song by the old singer John Lee that everybody in town knew before his death.", None),
        ("It was John Lee, though the critic hid his source.", None),
        ("It was John Lee, Napoleon and his horse.", None),
        ("Their son, John, hid his notes.", None),
        ("They chose F. John Lee, and he hid his notes.", None),
        ("Then Nick Culver (John Lee) hid his notes.", None),
        ("It was the old singer John Lee who hid his notes.", "John"),
        ("Poet and translator John Lee met Anna Ray. He won.", "John"),
        ("John, Ray and Tim Lee sold his farm.", None),
        ("Known as a wit, singer Anna Lee met John Ray. She won.", "Anna"),
        ("The Times praised Anna Lee. A former rower, Anna won her case; John lost.", "Anna"),
        ("John and Anna Lee ran it. He cooked; she sang.", None),
        ("Anna wren nests are domed.", None),
        ("Detective Inspector Anna Lee met John. She won.", "Anna"),
        ("Singer-songwriter Anna Lee writes about the men of Rome. Her songs sell.", "Anna"),
        ("In his role as mayor, Councilman John Lee spoke. He won.", "John"),
        ("Hi! I'm Anna. I live with my husband, John, who sings his songs.", "Anna"),
        ("Hi! I'm Anna's boss. He is John.", None),
        ("Uncle John's Auto was sold by its owner; he left.", None),
        ('Comedian John Lee is called "the man from hell." He won.', "John"),
        ('Rapper and cook John "Big Cat" Lee left with Anna after his show.', "John"),
        ("The late John Lee was tall. He won.", "John"),
        ("Yesterday the poet John Lee praised Hughes after his first goal.", None),  # whose goal?
        ("They went to see Eve's granddaughter, Anna Lee, at her home.", None),
        ("", None),
    ],
)
def test_the_subject_opens_a_sentence_and_agrees_with_the_pronouns(text, name):
    assert subject_name(text, re.compile(r"\b(?:Anna|John)\b"), frozenset(["John"])) == name


def test_the_clause_with_the_pronoun_names_the_subject():
    names = re.compile(r"\b(?:John|Paul|Anna)\b")
    text = "John Lee left in May, while coach Paul Ray lost his job."
    assert subject_name(text, names, frozenset(["John", "Paul"])) == "Paul"
    assert subject_name(text.replace("his", "the"), names, frozenset(["John", "Paul"])) is None
    assert subject_name(text.replace("Paul", "Anna"), names, frozenset(["John", "Paul"])) == "John"


def test_a_word_that_is_a_name_too():
    names = re.compile(r"\b(?:Mark|Grace)\b")
    text = "Mark your calendar: Mark speaks about his work."
    assert subject_name(text, names, frozenset(["Mark"])) == "Mark"
    swapped = GenderSwap(names=(["Mark"], ["Laura"])).swap(text)
    assert swapped == "Mark your calendar: Laura speaks about her work."
    assert subject_name("Grace period rules apply until she pays.", names, frozenset(["Mark"])) is None


def test_a_name_after_to_of_from_is_a_place_only_if_there_is_one():
    swap = GenderSwap(names=(["John"], ["Charlotte", "Anna"]))
    assert swap.swap("Anna asked; she sent it to Anna.") == "John asked; he sent it to John."
    assert swap.swap("Charlotte moved to Charlotte; she sings.") == "John moved to Charlotte; he sings."
    assert swap.swap("Anna was born in Anna; she sings.") == "John was born in Anna; he sings."


@pytest.mark.parametrize(
    "text",
    [
        "Anna Kettles is open again.",
        "John Tops has ten branches.",
        "Anna from sales left a note.",
        "It rained. Anna slept. John left.",
        "Anna was on again, and Grandpa, who hates it, sang.",
        "Anna is the third-largest shipping hub in Europe.",
        "A former John Ray buyer opened his own shop.",
        "Every John Ray fan will love his songs.",
    ],
)
def test_nothing_says_that_it_is_a_person(text):
    assert subject_name(text, re.compile(r"\b(?:Anna|John)\b"), frozenset(["John"])) is None


@pytest.mark.parametrize(
    "text",
    [
        "Anna Kettles opened again. She sells tea.",
        "Anna Kettles, 91, of Bonn, died in May.",
        "Anna Kettles, a retired nurse, lives in Bonn.",
        "Anna Kettles, who taught for years, lives in Bonn.",
        "Anna Kettles, MD, works in Bonn.",
        "Anna Kettles works as a nurse in Bonn.",
        "Anna Kettles is an alumna of the school.",
        "Mayor Anna Kettles spoke.",
        "Anna Kettles spoke. Ms. Kettles left early.",
        "Anna Kettles runs a mill in Bonn. Anna likes bread.",
    ],
)
def test_something_says_that_it_is_a_person(text):
    assert subject_name(text, re.compile(r"\b(?:Anna|John)\b"), frozenset(["John"])) == "Anna"


def test_a_town_asks_for_more():
    names, male = re.compile(r"\b(?:Charlotte|Austin)\b"), frozenset(["Austin"])
    assert subject_name("Charlotte is the biggest rail hub of the South. She left it.", names, male) is None
    assert subject_name("Charlotte was a member of the league.", names, male) is None
    assert subject_name("Charlotte was a member of the league. She left it.", names, male) == "Charlotte"
    assert subject_name("Charlotte Ray is a member of the league.", names, male) == "Charlotte"


def test_the_third_of_the_name_is_somebody_else():
    swap = GenderSwap(sure=False, names=(["John"], ["Anna"]))
    assert swap.swap("Anna Lee is the third Anna Lee in her town.") == "John Lee is the third Anna Lee in his town."
    assert swap.swap("Anna Lee is like every Anna her age.") == "John Lee is like every Anna his age."


def test_the_widow_is_whom_nobody_has_spoken_of_before():
    swap = GenderSwap(nouns=True, names=(["Paul"], ["Anna"]))
    assert swap.swap("The widow Anna Lee left her farm to us.") == "The widower Paul Lee left his farm to us."
