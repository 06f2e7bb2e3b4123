"""Her before what she owns, and her as an object."""

import re

import pytest

from evenhand.counterfactuals import GenderSwap
from evenhand.counterfactuals.possessives import owned_follows


@pytest.mark.parametrize(
    ("text", "owned"),
    [
        ("in [her] book", True),
        ("saw [her].", False),
        ("They elected [her] president.", False),
        ("They praised [her] president.", True),
        ("It made [her] famous.", False),
        ("She sold [her] famous house.", True),
        ("She made [her] famous soup.", True),
        ("The bees keep [her] sane, she says.", False),
        ("It left [her] cold.", False),
        ("A statue of [her] stands there.", False),
        ("A statue of [her] father stands there.", True),
        ("I heard [her] sing.", False),
        ("I saw [her] work on display.", True),
        ("I watched [her] work.", False),
        ("[Her] and my views differ.", True),
        ("in [her] later years", True),
        ("We saw [her] later that day.", False),
        ("They drove [her] home.", False),
        ("Ohio is [her] home.", True),
        ('He sang it on [his] " Blue Sky " album.', True),
        ("He died in [his] home, alone.", True),
        ("the [his]", False),
        ("It was [his] in - house lawyer.", True),
        ("It was [his] in name.", False),
        ("You will find [her] surfing, baking or asleep.", False),
        ("They left [her] standing there.", False),
        ("We saw [her] running the shop.", False),
        ("We saw [her] winning goal.", True),
        ("She kept [her] painting in Rome.", True),
    ],
)
def test_owned(text, owned):
    said = re.search(r"\[(\w+)\]", text)
    assert owned_follows(text.replace("[", "").replace("]", ""), said.start(), said.end() - 2) == owned


def test_his_later_years():
    assert GenderSwap().swap("Her later years were hers.") == "His later years were his."
    assert GenderSwap().swap("They met his then boss.") == "They met her then boss."
