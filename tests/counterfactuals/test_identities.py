from evenhand.counterfactuals import identity_categories, identity_tokens
from evenhand.counterfactuals.identities import capitalised, forms_of, known


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
