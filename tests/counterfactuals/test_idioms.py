import pytest

from evenhand.counterfactuals.idioms import idiom


@pytest.mark.parametrize(
    ("word", "before", "after", "found"),
    [
        ("mother", "their ", " tongue", True),
        ("mother", "their ", " sings", False),
        ("mom", "a ", " joke", True),
        ("dad", "a ", " of two", False),
        ("lady", "the first ", "", True),
        ("gentleman", "a ", " farmer", True),
        ("man", "", ", that hurt", True),
        ("woman", "", " of the match", True),
    ],
)
def test_phrases(word, before, after, found):
    assert idiom(word, before, after) == found
