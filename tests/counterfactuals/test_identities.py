import pytest

from evenhand.counterfactuals import identity_categories, identity_tokens
from evenhand.counterfactuals.identities import capitalised, forms_of, known, tokens_of


def test_every_token_has_one_category_and_forms():
    in_categories = [token for tokens in identity_categories().values() for token in tokens]
    assert sorted(in_categories) == sorted(identity_tokens())
    for token in identity_tokens():
        forms = forms_of(token)
        assert known(token)
        assert forms.adjective == token
        assert forms.noun != forms.plural


def test_regular_forms_of_a_new_token():
    assert forms_of("gypsy")[1:] == ("gypsy", "gypsies", False)
    assert forms_of("vietnamese").plural == "vietnamese"


def test_capitals_of_proper_forms():
    assert capitalised(forms_of("middle eastern").plural) == "Middle Eastern people"
    assert capitalised("lgbtq") == "LGBTQ"
    assert not forms_of("gay").proper


def test_the_list_is_not_shared():
    identity_tokens().clear()
    assert len(identity_tokens()) == 50


def test_a_list_of_tokens_loses_no_line():
    assert tokens_of("muslim, christian, gay\nblack,white # a comment\n\n# another\n", "x.txt") == [
        *("muslim", "christian", "gay", "black", "white")
    ]
    assert tokens_of("faith: muslim, christian\nears: deaf,hearing\nfaith: jewish\n", "x.txt") == {
        "faith": ["muslim", "christian", "jewish"],
        "ears": ["deaf", "hearing"],
    }


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("faith: muslim, christian\nblack\nwhite", "x.txt mixes lines with a category .* such as line 2; give every"),
        ("\n: muslim, christian", "line 2 of x.txt should be a category and its tokens"),
        ("muslim", "x.txt holds 1 token; a swap needs two or more"),
        ("# nothing", "x.txt holds 0 tokens"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(lines, said):
    with pytest.raises(ValueError, match=said):
        tokens_of(lines, "x.txt")
