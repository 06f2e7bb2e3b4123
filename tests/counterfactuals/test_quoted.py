import pytest

from evenhand.counterfactuals.quoted import in_a_title, spoken_about


@pytest.mark.parametrize(
    "text",
    [
        "the word {} is old",
        'the words "Irish" or "{}" there',
        "the term “{}” offends",
        "{} as a noun?",
        "{} is a slur",
        "{} means happy",
        'it has the word " {} " in it',
    ],
)
def test_the_word_itself(text):
    assert spoken_about(*text.split("{}"))


@pytest.mark.parametrize(
    "text",
    ["the {} man", "being {} means a lot", "the terms {} people use", "she is {}, a word to the wise", "word word {}"],
)
def test_somebody_rather_than_a_word(text):
    assert not spoken_about(*text.split("{}"))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('They sang "{} Woman" again', True),
        ("I like ''The {} Dream of Ours''.", True),
        ("“Young {}” is a song", True),
        ("I saw 'The {} Wife' with her", True),
        ("the Smiths' {} Wives Club's party", False),  # apostrophes
        ("see the {} and Bolshevism section", True),
        ('in "{} Voices In The Media: Consequences Of An', True),  # it ends beyond what is seen
        ("it is about {} and the page", False),
        ('He said "{} women rule" again', False),  # small letters: speech
        ('"{} Suck!" he said', False),
        ('"{}" is an adjective', False),
        ('the "Young" {} Woman "Old" show', False),  # between two quotations
        ('THE "{} WOMAN" SINGS', False),  # all in capitals says nothing
    ],
)
def test_titles_in_quotation_marks(text, title):
    before, after = text.split("{}")
    assert in_a_title(before, "AMERICAN" if text.isupper() else "American", after) is title


@pytest.mark.parametrize(
    "text",
    [
        'I changed "folks" to "{white} people" there',
        'replacing all instances of "them" with "{jews}"',
        'Danish for "{black} dog"',
        'they avoid the terms " " Turks " ", and " " {Muslims} " " now',
    ],
)
def test_words_that_are_changed_translated_or_listed(text):
    before, _, rest = text.partition("{")
    assert spoken_about(before, rest.partition("}")[2])


def test_what_is_changed_and_is_no_word():
    assert not spoken_about("We changed it to help ", " people")
    assert not spoken_about('He changed his mind: "all ', " people are kind")
