import pytest

from evenhand.counterfactuals import names_in
from evenhand.counterfactuals.given_names import known_names, other_names, vague_name
from evenhand.counterfactuals.texts import word_list


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


def test_a_name_of_both_genders_is_not_drawn():
    assert other_names(["John", "Kim"], ["Anna", "Kim"]) == {"John": ["Anna"], "Anna": ["John"]}


def test_the_names_of_the_list_are_single_words_of_one_gender_in_order():
    male, female = known_names()
    assert len(male) > 2000
    assert len(female) > 2000
    assert not male & female
    assert all(name[:1].isupper() and name.isalpha() for name in male | female)
    listed = [name for line in word_list("given_names") for name in line.split()[1:]]
    assert len(listed) == len(set(listed))
    assert not any(map(vague_name, listed))  # those have a list of their own
    for sex in ("male", "female"):
        firsts = [line.split()[1][0] for line in word_list("given_names") if line.startswith(f"{sex} ")]
        plain = [letter for letter in firsts if letter.isascii()]
        assert plain == sorted(plain)


def test_short_forms_and_names_from_many_places_are_known():
    male, female = known_names()
    assert {"Pete", "Dave", "Deshawn", "Emeka", "Vikram", "Hiroshi", "Tomasz", "Joaquín", "Yusuf"} <= male
    assert {"Beth", "Tamika", "Ngozi", "Deepika", "Yumiko", "Agnieszka", "Alejandra", "Aoife", "Layla"} <= female
