from evenhand.counterfactuals import TokenSwap, identity_tokens
from evenhand.datasets import about_people


def test_none_of_the_others_is_one_of_the_fifty_tokens():
    """Experiments keep half of the tokens from the training: this list must not bring them back."""
    said = about_people().values
    tokens = TokenSwap(identity_tokens(), everywhere=True)
    assert not [text for text in said.ravel() if tokens.mentioned([text])[0]]
    assert said.shape[1] > 70
    assert all(len(set(row)) == len(row) for row in said)


def test_each_sentence_says_the_same_of_everybody():
    said = about_people(["deaf", "vegan"]).values
    assert said[0, :3].tolist() == ["I am a deaf person.", "I am a vegan.", "I am a French person."]
    assert "I am an atheist." in said[0]
    assert (said[0] == "I am a vegan.").sum() == 1  # listed by the user and by us
