"""Texts of which the rules cannot tell of whom they speak: each reason, and beside it a text that is plain."""

import pytest

from evenhand.counterfactuals import GenderSwap
from evenhand.counterfactuals.certainty import OF_ONE_GENDER, ONE_OF_SEVERAL, TWO_PEOPLE, WHOSE_NAME, doubt
from evenhand.counterfactuals.nouns import PERHAPS_ANOTHER, UNSURE

NAMES = (
    ["Paul", "Norman", "Percival", "Howard", "Irving", "Chen"],
    ["Anna", "Marguerite", "Edith", "Suzanne", "Julie"],
)


def why(text, **options):
    swap = GenderSwap(nouns=True, names=NAMES, **options)
    reasons = {site.left for site in swap.sites(text) if site.left.startswith("unsure")}
    assert (swap.swap(text) is None) == bool(reasons)
    return reasons


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Anna Lee is a nurse. She met him in Rome.", TWO_PEOPLE),
        ("A cook and his wife ate it; the woman fell ill.", TWO_PEOPLE),
        ("A cook and his wife ate it, of which the husband knew.", TWO_PEOPLE),
        ("Zorro Quilby, farmer, has died aged 84. He never married.", WHOSE_NAME),  # in no list, and nothing says more
        ("The editor, Zenobia Quill, wrote in her own hand.", WHOSE_NAME),
        ("Lord Percival Finch is the stage name of Norman Ray, a magician. He sings.", WHOSE_NAME),
        ("Hollis was a pilot when the producer Irving Katz saw him.", WHOSE_NAME),
        ("Ravel and his wife met the cook, who is his friend.", WHOSE_NAME),
        ("Chen Quilby is a cook. He sings.", WHOSE_NAME),  # which of the two is the surname?
        ("Anna Lee became one of the richest businesswomen of York. She sang.", ONE_OF_SEVERAL),
        ("The first female surgeon, Suzanne Lee, wrote her book.", OF_ONE_GENDER),
        ("Anna Lee was a ballerina in York. She sang.", OF_ONE_GENDER),
        ("Anna Lee was a choirmistress in York. She sang.", OF_ONE_GENDER),
        ("Anna Lee was a showgirl in York. She sang.", OF_ONE_GENDER),
        ("Anna Lee was among the first women there. She sang.", ONE_OF_SEVERAL),
        ("Anna Lee is the youngest of five girls. She sang.", ONE_OF_SEVERAL),
        ("Anna Lee was mayoress of York. She sang.", OF_ONE_GENDER),
        ("Anna Lee was born Lady Edith Lee. She sang.", WHOSE_NAME),
        ("Anna Lee was christened Edith in York. She sang.", WHOSE_NAME),
        ("Anna Lee was a dame of the stage. She sang.", OF_ONE_GENDER),
        ("Paul Lee Senior ran the forge. He sang.", OF_ONE_GENDER),
        ("Great-aunt Anna Lee died. She was kind.", WHOSE_NAME),
        ("Princess Anna Lee studied law. She sang.", WHOSE_NAME),
        ("Howard was born in York. He sang.", WHOSE_NAME),  # perhaps a surname
        ("Paul Lee was cleared because the judge had erred in his summing up.", WHOSE_NAME),
        ("Paul Lee came in as a coach and Brough lost his place.", WHOSE_NAME),
        ("Paul Lee said of his debut that it rained.", WHOSE_NAME),
        ("Paul Lee was his uncle and a friend.", WHOSE_NAME),
        ("Irving Katz saw him.", WHOSE_NAME),
        ("Ayelet has worked there since 2016. She is a nurse.", WHOSE_NAME),
        ("As a cook he was hopeless, but Erasmus Quill sang well.", WHOSE_NAME),
        ("After the death of her husband, Mrs. Quill managed the brewery.", WHOSE_NAME),
        ("Paul Lee saved a grandmother and her cats.", WHOSE_NAME),
        ("Anna Lee was pregnant when she won.", OF_ONE_GENDER),
        ("Anna Lee is a cook. Her guests were two bishops, a bride and a pilot. She sang.", UNSURE),
        ("She met Edith, a waitress from York.", PERHAPS_ANOTHER),
    ],
)
def test_a_text_that_may_be_half_swapped_has_no_version_and_says_why(text, reason):
    assert why(text) == {reason}
    assert why(text, sure=False) == set()


@pytest.mark.parametrize(
    "text",
    [
        "Anna Lee is a nurse. She met them in Rome.",
        "A cook and his wife ate it; the child fell ill.",
        "Anna Lee, farmer, has died aged 84. She never married.",
        "She works at the Robert Quill Institute.",
        "Zorabel Quill is a nurse. She writes in her own hand.",
        "Paul Hollis was a pilot, and his plane was old.",
        "Paul Lee was a cook and a friend of the family before he left.",
        "Paul Lee of the Guardian lost his keys.",
        "Paul Lee met Anna Ray for his book.",
        "Economist Zorabel Quill argues that her field has been timid.",
        "She played Prince Hal.",
        "Paul Ravel and his wife met the cook.",
        "He and his wife met the cook.",
        "Chen Wang is a cook. He sings.",
        "Anna Lee employs the richest businesswomen of York. She sang.",
        "Dr. Anna Lee cares for pregnant women. She sings.",
        "Anna Lee, a bride and a pilot, sang. She won.",
        "His or her keys are lost, said Paul. He is a cook.",
    ],
)
def test_plain_texts_have_their_version(text):
    assert why(text) == set()


def test_names_are_doubted_only_where_names_are_swapped():
    text = "Zorro Quilby, farmer, has died aged 84. He never married."
    assert GenderSwap(nouns=True).swap(text) == text.replace("He", "She")
    assert GenderSwap().swap("She met him.") == "He met her."  # pronouns alone are those of everybody
    assert doubt(text, GenderSwap().sites(text), None, frozenset(), named=True) == WHOSE_NAME
    assert doubt(text, [], None, frozenset(), named=True) == ""


def test_the_preview_counts_them():
    shown = GenderSwap(nouns=True, names=NAMES).preview(["Anna Lee is a nurse. She met him.", "Anna is a cook.", "It"])
    assert (shown.texts, shown.swapped, shown.unsure) == (3, 1, 1)
    assert "1 more say a gender, but the rules cannot tell of whom" in str(shown)


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("Paul Lee is a cook. He is a great-grandfather.", "Anna Lee is a cook. She is a great-grandmother."),
        ("Paul Lee, a great-uncle of nine, sings. He cooks.", "Anna Lee, a great-aunt of nine, sings. She cooks."),
        ("Paul is the great-grandson of a cook. Paul sings.", "Anna is the great-granddaughter of a cook. Anna sings."),
        ("Paul Lee is a father and co-chairman. He sings.", "Anna Lee is a mother and co-chairwoman. She sings."),
        ("Paul Lee, Senior Lecturer in Law, sings. He cooks.", "Anna Lee, Senior Lecturer in Law, sings. She cooks."),
        ("Paul Lee sings. His great-grandfather did, too.", "Anna Lee sings. Her great-grandfather did, too."),
    ],
)  # fmt: skip
def test_a_great_uncle_is_an_uncle(text, swapped):
    assert GenderSwap(nouns=True, names=(["Paul"], ["Anna"])).swap(text) == swapped
