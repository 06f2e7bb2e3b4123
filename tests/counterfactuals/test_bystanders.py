"""Nobody else who stays may be meant by a pronoun that changes: each reason, and beside it a text that is plain."""

import time

import pytest

from evenhand.counterfactuals import GenderSwap
from evenhand.counterfactuals.bystanders import only_person, somebody_else

MEN, WOMEN = ["Paul", "Norman", "Howard", "Irving", "James"], ["Anna", "Edith", "Suzanne", "Julie"]
SWAP = GenderSwap(nouns=True, names=(MEN, WOMEN))


@pytest.mark.parametrize(
    "text",
    [
        # pronouns alone, and the name of somebody who may be meant stays
        "In his report, the clerk Zorro Quill spoke of rain.",
        "In his role as vice mayor Zorro Quill spoke of rain.",
        "In May, Zorro Quill then mayor of York lost his keys.",
        "For his courage the pilot Zorro Quill was praised.",
        "It is hard for the singer herself, Edythe Zora Quill, to tell.",
        "Roland and his wife Catherine draw maps.",
        "Zenobia Quill (born 1950) is a nurse noted for her kindness.",
        "Ayelet has worked there since 2016. She is a nurse.",
        "Big Zorro Quill is heavy. He lifts trucks.",
        "Grandpa Quill slept in his chair.",
        # a name changes, and somebody else in the sentence may be meant
        "The critic Zorro Ray cited the cook Paul Lee as one of his friends.",
        "Paul Lee, a cook, was impressed by his voice.",
        "Paul Lee was the most famous of his students.",
        "It stars Zorro Ray, Paul Lee, and Edda Quill, and follows a cook who finds himself alone.",
        "The cook, Paul Lee, predicted he would win.",
        "Paul Lee remembered the young goalkeeper during his spell there.",
        "Paul Lee likened Quill to his players.",
        "Paul Lee goes to Quill's office, but a clerk and his son stop him.",
        "A lawyer told Paul Lee that he banged his fist.",
        "Paul Lee described the Frenchman prior to his debut.",
        # nobody else is named, and still it is somebody else's
        "Paul Lee was a follower of his style.",
        "Paul Lee was confirmed as his replacement.",
        "Paul Lee ordered his house arrest.",
        "Paul Lee said at his death that it rained.",
        "Paul Lee spoke highly of his work.",
        "Paul Lee nicknamed him in part for his speed.",
        "Paul Lee alleged that he led the club.",
        'Paul Lee told them: "He is a genius."',
        "After his death, the cook Paul Lee was elected.",
        "The son of Paul Lee, Quill sold his house.",
        "In his place, the cook Paul Lee was elected.",
        "While he slept, the cook Paul Lee was elected.",
        "In 1901 the cook Paul Lee would not commit to his next start.",
        # the person is named once more, and that name or noun stays
        "The artist's brother-in-law Paul Lee sold his house.",
        "Paul Lee, Zora's father, sold his house.",
        "The cook was a friend of his wife.",
        "Edith Quill became his secretary and his second wife.",
    ],
)
def test_somebody_who_stays_may_be_meant(text):
    assert SWAP.swap(text) is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("The clerk and his wife met a judge.", "The clerk and her husband met a judge."),
        ("His father was a cook and his mother a judge.", "Her father was a cook and her mother a judge."),
        ("He was a friend of Zorro Quill.", "She was a friend of Zorro Quill."),
        ("He drove his Skoda car to the Guardian.", "She drove her Skoda car to the Guardian."),
        ("Anna Quill thanked her in May.", None),
        ("She met Paul Lee in her shop.", "He met Paul Lee in his shop."),
        ("A gifted cook, she sold her house.", "A gifted cook, he sold his house."),
        ("The patient is a man. He has his doubts.", "The patient is a woman. She has her doubts."),
    ],
)
def test_nobody_else_may_be_meant(text, version):
    assert SWAP.swap(text) == version


@pytest.mark.parametrize(
    "text",
    [
        "Paul Lee, a cook, sold his house.",
        "In May, the Welsh cook Paul Lee sold his house.",
        "In his first book, the cook Paul Lee tells of rain.",
        "When he sold it, Paul Lee kept his key.",
        "Paul Lee is a cook. His boss, Zorro Quill, admires him.",
        "Paul Lee is a cook. Zorro Quill met Edith there.",
        "Paul Lee is a cook; Paul's father admires him.",
        "Paul Lee lived here until his death.",
        "The old cook Paul Lee cut himself.",
        "The actor Paul Lee broke his ankle.",
        "Farmer Paul Lee lost all of his hay.",
        "Veteran cook Paul Lee has died at his home in York, his family said.",
        "Police said Paul Lee was held at his home in York.",
        "The pilot, Captain Paul Lee, landed it after he lost an engine.",
        "Schoolboy Paul Lee, 12, cut off his hair.",
        "Paul Lee is a cook. He is helped by his rival, Irving Quill. He sings.",
        "Paul Lee is a Welsh goalkeeper who plays for York. He sings.",
        "Paul “Big” Lee, a policeman, died at his home.",
    ],
)
def test_a_name_changes_where_the_pronoun_can_only_be_theirs(text):
    version = SWAP.swap(text)
    assert version is not None
    assert "Paul" not in version


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("In May, the cook Anna Lee sold her house.", "Anna"),
        ("In May, the cook Anna sold her house.", None),  # a surname, perhaps
        ("In May, Anna Lee and Edith Lee sold her house.", None),
        ("In May, Anna Lee and Paul Lee sold her house.", "Anna"),
        ("It was sold by Anna Lee, who loved her house.", None),
        ("A cook (Anna Lee) sold her house.", None),
        ("She sold it to Anna Lee.", None),
        ("Zorro Anna Lee sold her house.", None),
        ("In May, the cook Anna Lee sold his house.", None),
        ("In May, the cook Anna Lee sold it.", None),
    ],
)
def test_the_only_person_with_a_full_name(text, name):
    assert only_person(text, frozenset(MEN), frozenset(WOMEN)) == name


def test_without_a_pronoun_that_changes_there_is_nobody_to_doubt():
    text = "Paul Lee met Howard Quill."
    assert not somebody_else(text, SWAP.sites(text), frozenset(["Paul"]), True)


def test_a_long_text_takes_its_length_in_time():
    """A second of it took a minute when every mention was compared with every other."""
    others = "She wrote to the owner of the house, and the editor asked the author for an essay about a farmer. "
    text = "Anna Lee is a lawyer. " + 80 * others
    began = time.process_time()
    assert len(SWAP([text])) <= 1
    assert time.process_time() - began < 10
