"""A subject whose given name is in no list."""

import pytest

from evenhand.counterfactuals import GenderSwap
from evenhand.counterfactuals.unlisted import unlisted_subject


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Zorabel Rhodes is a nurse. She sings.", ("Zorabel", False)),
        ("Dr. Quillon Ashby treats children; he sings.", ("Quillon", True)),
        ("Zorabel van der Rhodes joined us in May. Zorabel likes her job.", ("Zorabel", False)),
        ("Quillon Ashby joined the firm in 2016. Mr. Ashby sings and he cooks.", ("Quillon", True)),
        ("Quillon B. Ashby (born 1950) was a Welsh [occupation] and he sang.", ("Quillon", True)),
        ("Bishop Quilla Ashby read her first sermon in May.", ("Quilla", False)),
        ("Prof. Dr. Hans-Peter Ashby is head of a school. He sings.", ("Hans-Peter", True)),
        ("Mei-Xiu Rhodes is a nurse. She sings.", ("Mei-Xiu", False)),
        ("Poet and critic Quillon Ashby left us in May. Ashby sings and he cooks.", ("Quillon", True)),
        ("The actress Quilla Ashby gave him his first job.", None),
        ("Zorabel Rhodes joined us in May. She sings.", None),  # may be a firm
        ("Zorabel Rhodes is a nurse.", None),  # of which gender?
        ("Zorabel Rhodes is a nurse. She met his aunt.", None),
        ("Zorabel Services is a leader in tools. She joined it.", None),
        ("Hudson River Park is a home to runners; she ran.", None),
        ("Filmmaker Luis Rhodes is a cook. He sings.", None),  # a role, and a name that is known
        ("Susan Rhodes is a nurse. She sings.", None),  # known
        ("Madame Rhodes is a nurse. She sings.", None),
        ("Monday Rhodes is a nurse. She sings.", None),
        ("She met Zorabel Rhodes.", None),
    ],
)
def test_the_subject_by_what_the_text_says(text, found):
    assert unlisted_subject(text) == found


def test_it_is_swapped_in_all_its_places():
    swap = GenderSwap(nouns=True, names=(["Paul"], ["Anna"]))
    text = "Zorabel Rhodes is an actress. She lives in Rome. Zorabel's mother taught her."
    assert swap.swap(text) == "Paul Rhodes is an actor. He lives in Rome. Paul's mother taught him."


def test_both_versions_are_read_alike():
    swap = GenderSwap(nouns=True, names=(["Paul"], ["Anna"]))
    text = "Zorabel Rhodes is an actress. Her dog likes Zorabel."
    assert swap.alike([text]).values.tolist() == swap.alike([swap.swap(text)]).values.tolist()


def test_a_surname_that_comes_first():
    assert unlisted_subject("Gao Weiming is a professor of physics. He teaches. Professor Gao is kind.") is None
    assert unlisted_subject("Gaorel Weiming is a professor. He teaches. Professor Weiming is kind.") == ("Gaorel", True)
