"""Whose title it is: that of the person the text is about changes, others stay."""

import pytest

from evenhand.counterfactuals import GenderSwap
from evenhand.counterfactuals.texts import word_list


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("Mrs. Lee retired. In 2010, Mrs. Lee moved.", "Mr. Lee retired. In 2010, Mr. Lee moved."),
        ("She thanked Mrs. Patel.", "He thanked Mrs. Patel."),
        ("He was taught by Mr. Knutsen.", "She was taught by Mr. Knutsen."),
        ("Asked about it, Ms. Tran said she agrees.", "Asked about it, Mr. Tran said he agrees."),
        ("Ms. Tran said that Ms. Tran was tired.", "Mr. Tran said that Mr. Tran was tired."),
        ("She wrote about Mrs Dalloway.", "He wrote about Mrs Dalloway."),
        ("Ms. Day said that Ms. Knight would replace her.", "Mr. Day said that Ms. Knight would replace him."),
        ("Mr. Day's boss likes him. In May, Mr. Knight left.", "Ms. Day's boss likes her. In May, Mr. Knight left."),
        ("Mrs Dalloway is her favourite.", "Mrs Dalloway is his favourite."),
        ("He is known for his role as Mr Rochester.", "She is known for her role as Mr Rochester."),
        ("Mr. and Mrs. Lee came with her.", "Mr. and Mrs. Lee came with him."),
        ("She was Miss Ohio and Ms. Senior America.", "He was Miss Ohio and Ms. Senior America."),
        ("Mrs Kemp and Mrs Hodges met him.", "Mrs Kemp and Mrs Hodges met her."),
        ("A fight between her and Mrs. Rouse began.", "A fight between him and Mrs. Rouse began."),
        ("It was her teacher, Mrs. Bean, who won.", "It was his teacher, Mrs. Bean, who won."),
        ("Then Ebenezer's clerk Mr. Leech hid his pen.", "Then Ebenezer's clerk Mr. Leech hid her pen."),
        ("In his speech, Mr. Lang laughed.", "In her speech, Ms. Lang laughed."),
        ("I miss her.", "I miss him."),
        ("The cook tells his maid that Mr. Ray left.", "The cook tells her maid that Mr. Ray left."),
        ("The cook tells his maid that Mr. Ray left his hat.", "The cook tells her maid that Ms. Ray left her hat."),
        ("He left when the owner, Mr. Ray, fell ill.", "She left when the owner, Mr. Ray, fell ill."),
        ("The cook places her girl at Miss Pym's school.", "The cook places his girl at Miss Pym's school."),
        ("Mr. Coffee sold more pots than she did.", "Mr. Coffee sold more pots than he did."),
    ],
)
def test_titles(text, swapped):
    assert GenderSwap().swap(text) == swapped


def test_characters_are_single_words():
    assert all(word[:1].isupper() for line in word_list("characters") for word in line.split())


def test_whom_somebody_treats_is_somebody_else():
    left = [site.left for site in GenderSwap().sites("The barber thanks Mr. Quill in his office.") if site.said == "Mr"]
    assert left == ["somebody else"]


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("Anna May sings. Ms. May left.", "Paul May sings. Mr. May left."),
        ("Anna May sings. Miss May left.", "Paul May sings. Mr May left."),
        ("Paul Day sings. Mr Day left his job.", "Anna Day sings. Ms Day left her job."),
        ("Mrs Hill sold her house.", "Mr Hill sold his house."),
        ("Ms Alliance sold her house.", "Ms Alliance sold his house."),
    ],
)
def test_a_surname_that_is_another_word(text, swapped):
    assert GenderSwap(names=(["Paul"], ["Anna"]), sure=False).swap(text) == swapped
