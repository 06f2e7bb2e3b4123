import pytest

from evenhand.counterfactuals.insults import insulted, repeated


@pytest.mark.parametrize(
    "text",
    [
        "you are so {gay}",
        "this is {gay}.",
        "what a {gay} ass",
        "are you {blind}?",
        "ur {gay}",
        "ur soooo {gay}",
        "y'all are {gay}",
        "u guys are {queer}",
        "the band is dumb and {gay}",
        "a {gay} little fag",
    ],
)
def test_the_word_is_the_insult(text):
    before, said, after = text.replace("}", "{").split("{")
    assert insulted(before, said, after, plural=False)


@pytest.mark.parametrize(
    "text", ["I am {gay}", "you are {gay} people", "I am {blind}.", "so {old}", "my uncle is {gay}"]
)
def test_somebody_is_meant(text):
    before, said, after = text.replace("}", "{").split("{")
    assert not insulted(before, said, after, plural=False)


def test_a_few_words_over_and_over():
    assert repeated("gay gay gay", 4, 7)
    assert not repeated("a gay man met another gay man", 2, 5)
