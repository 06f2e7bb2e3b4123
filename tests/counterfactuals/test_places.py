"""Where a given name is no person's."""

import pytest

from evenhand.counterfactuals.places import STARTS, part_of_a_place, role_before, surname_follows


@pytest.mark.parametrize(
    "text",
    [
        "in San {Diego} now",
        "Don {Diego} rode on",
        "when Nur ' {Ali} sang",
        "the {Martha}'s Vineyard ferry",
        "she met Elton {John} there",
        "an {Anna}-Maria is rare",
        "born in {Elizabeth}, New Jersey",
        "the court of {Frederick} IV grew",
        "{Lance} Corporal Jack Quill sang",
        "a lawyer from Savannah, {Georgia}, sang",
        "a play about {Richard} II of England",
        "dinner at {Lucia}'s, then home",
        "the owner of {Lucia}'s (no relation)",
        "{Lucia}'s is the only diner here",
        "{Alice} Brandão is the debut album by a band",
        "{Tom} Kha is one of the richest soups in the book",
        "{Erika} was a merchant ship of the line",
        "a temp at {Martin} Services in May",
        "{Lucia}'s sells pies",
        "{Lucia}'s will open in May",
        "{Johnny} Rolls is closed on Mondays",
        "{Martha} Quill Elementary's head sang",
        "{Lucia} is open until ten",
        "{Mary} Poppins was on, and she sang along",
        "{Harry} Potter keeps her awake",
    ],
)
def test_a_place_a_ruler_a_shop_a_work(text):
    start = text.index("{")
    end = text.index("}") - 1
    assert part_of_a_place(text.replace("{", "").replace("}", ""), start, end)


@pytest.mark.parametrize(
    "text",
    [
        "{Susan} Park is a nurse",
        "{Anna} is a film critic",
        "{Anna} is open about it",
        "{Harry} Potts is a baker",
        "{Anna} is the author of a novel",
        "{Alice} Washington is a pilot",
        "In 2007, Sir {Edmund} moved",
        "Later Cantor {Hannah} sang",
        "Hi, I'm {Beth}'s boss",
        "known as Miss {Wanda} to all",
        "a friend of {Lucia}'s, I think",
        "Then {John} I knew well",
    ],
)
def test_a_person(text):
    start = text.index("{")
    end = text.index("}") - 1
    assert not part_of_a_place(text.replace("{", "").replace("}", ""), start, end)


def test_where_a_sentence_begins():
    assert STARTS.search("It rained. Dr. ")
    assert STARTS.search("The late ")
    assert not STARTS.search("It rained on ")
    assert surname_follows(" B. Lee")
    assert surname_follows(' "Big Cat" Lee')
    assert not surname_follows(" sings")


def test_a_role_before_the_name():
    assert role_before("It rained. Poet and translator ")
    assert role_before("The former [occupation] ")
    assert not role_before("He met the poet ")
    assert not role_before("After the game coach ")
