import re
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.counterfactuals import TokenSwap, identity_categories, identity_tokens
from evenhand.counterfactuals.texts import cleaned

TOKENS = ["gay", "straight", "african american", "american", "old"]


def versions(text, tokens=TOKENS, **options):
    """Wherever the token stands, unless a test is about where it may stand."""
    return TokenSwap(tokens, **{"everywhere": True, **options})([text]).values[0].tolist()


def test_the_50_tokens():
    tokens = identity_tokens()
    assert len(tokens) == len(set(tokens)) == 50
    assert sorted(t for t in tokens if " " in t) == ["african american", "middle aged", "middle eastern"]
    assert {"lesbian", "millenial", "paralyzed"} <= set(tokens)


def test_version_0_is_the_original_then_each_other_token_in_order():
    assert versions("an old song") == [
        "an old song",
        "a gay song",
        "a straight song",
        "an african american song",
        "an american song",
    ]


def test_rows_without_a_token_have_no_versions():
    found = TokenSwap(TOKENS, everywhere=True)(["nothing", "so old", "", "gay"])
    assert found.rows.tolist() == [1, 3]
    assert found.values.shape == (2, 5)


def test_longest_match_first_and_any_gap_between_its_words():
    for text in ("african american food", "african  american food", "african-american food", "african\namerican food"):
        assert versions(text)[1] == "gay food"
    assert versions("american african food")[1] == "gay african food"


@pytest.mark.parametrize("text", ["older", "golden", "bold", "Americana", "old_age", "gayed", "ägay", "gay2"])
def test_only_whole_words(text):
    assert len(TokenSwap(TOKENS)([text])) == 0


@pytest.mark.parametrize("text", ["gay.", "(gay)", "gay's", "'gay'", "so-gay", "gay", "¡gay!", "gay…", "gay😀"])
def test_signs_end_a_word(text):
    assert versions(text)[1] == text.replace("gay", "straight")


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("gay", "african american"),
        ("GAY", "AFRICAN AMERICAN"),
        ("Gay", "African American"),
        ("gAY", "African American"),  # proper in a text that has capitals
    ],
)
def test_case_is_kept(said, written):
    assert versions(f"{said} rights")[2] == f"{written} rights"


def test_case_of_several_words_is_kept():
    tokens = ["african american", "middle eastern", "old"]
    assert versions("African American art", tokens)[1:] == ["Middle Eastern art", "Old art"]
    assert versions("the African American artist", tokens)[1:] == ["the Middle Eastern artist", "the old artist"]
    assert versions("AFRICAN AMERICAN art", tokens)[1:] == ["MIDDLE EASTERN art", "OLD art"]


def test_several_tokens_are_replaced_consistently():
    found = versions("Old gay, old AMERICAN: old!")
    assert found[0] == "Old gay, old AMERICAN: old!"
    assert found[2] == "Straight straight, straight STRAIGHT: straight!"
    assert len(set(found)) == 5


def test_plurals_can_be_left():
    tokens = ["gay", "lady", "christian", "fox", "chinese"]
    assert len(TokenSwap(tokens, plurals=False)(["gays"])) == 0
    assert versions("Gays and a gay", tokens) == [
        "Gays and a gay",
        "Ladies and a lady",
        "Christians and a Christian",
        "Foxes and a fox",
        "Chinese people and a Chinese person",
    ]


def test_sample_draws_a_subset_by_the_seed_and_the_text_only():
    texts = ["an old man", "a gay man", "a gay man", "straight on"]
    swap = TokenSwap(TOKENS, sample=2, random_state=3, everywhere=True)
    some = swap(texts)
    assert some.values.shape == (4, 3)
    everything = TokenSwap(TOKENS, everywhere=True)(texts)
    for drawn, every in zip(some.values, everything.values):
        assert drawn[0] == every[0]
        assert len(set(drawn)) == 3
        assert set(drawn) <= set(every)
    assert some.values[1].tolist() == some.values[2].tolist() == swap(texts[1:2]).values[0].tolist()
    many = [TokenSwap(TOKENS, sample=2, random_state=s)(texts[:1]).values[0, 1] for s in range(30)]
    assert len(set(many)) == 3  # of the four others in the order of the list, the last can never be first


def test_mentioned_says_which():
    assert TokenSwap(TOKENS, everywhere=True).mentioned(["Old GAY", "none", "african american"]) == [
        {"old", "gay"},
        set(),
        {"african american"},
    ]


def test_a_series_is_a_list_of_texts():
    assert TokenSwap(TOKENS)(pd.Series(["x", "gay"], index=[7, 9])).rows.tolist() == [1]


word = st.text(alphabet=st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
word = word.filter(lambda w: cleaned(w).strip())


@settings(max_examples=40, deadline=None)
@given(st.lists(word, min_size=2, max_size=4, unique_by=lambda w: " ".join(cleaned(w).split()).casefold()), st.text())
def test_any_tokens_and_any_text(tokens, text):
    """Regex signs, emoji, right-to-left: whatever the tokens are, each is found and replaced as it stands."""
    swap = TokenSwap(tokens, everywhere=True)  # "young" may be drawn too, which has rules
    found = swap([text, f"x {swap.tokens[0]} y"])
    assert 1 in found.rows
    for i, row in enumerate(found.rows):
        assert found.values[i, 0] == [text, f"x {swap.tokens[0]} y"][row]
    assert found.values.shape[1] == len(tokens)


@pytest.mark.parametrize("token", ["c++", "a.b", "(x)", "[y]", "$", "^", "\\d", "a|b", "*", "👩", "שלום"])
def test_tokens_with_regex_characters_are_plain_text(token):
    assert versions(f"I like {token} too", [token, "old"]) == [f"I like {token} too", "I like old too"]
    assert len(TokenSwap([token, "old"])(["axb 5 xyz"])) == 0


def test_right_to_left_and_emoji_text():
    assert versions("🏳️‍🌈 gay שלום עולם")[1] == "🏳️‍🌈 straight שלום עולם"
    assert versions("אני gay")[1] == "אני straight"


def test_nobody_with_a_token_is_an_empty_result():
    found = TokenSwap(identity_tokens())(["hello", "", "world"])
    assert found.values.shape == (0, 50)
    assert found.map(lambda texts: np.zeros((len(texts), 3))).values.shape[:2] == (0, 50)
    assert TokenSwap(TOKENS)([]).values.shape == (0, 5)


def test_a_text_of_a_megabyte():
    text = "word " * 200_000 + "she is gay"
    start = time.process_time()
    found = TokenSwap(TOKENS)([text])
    assert time.process_time() - start < 5
    assert found.values[0, 1].endswith(" straight")


def test_texts_are_not_padded_to_the_longest():
    tracemalloc.start()
    TokenSwap(TOKENS)(["gay " + "x" * 1_000_000] + ["gay"] * 1000)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", None], "text 1 is None"),
        ([float("nan")], "text 0 is nan (float)"),
        ([3], "text 0 is of type int"),
        ([b"gay"], "expected a string"),
        ("gay", "single string"),
    ],
)
def test_texts_that_are_no_texts(texts, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        TokenSwap(TOKENS)(texts)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["gay", "Gay"], "'Gay' comes more than once"),
        (["middle aged", "middle  aged"], "more than once"),
        (["gay", ""], "token 1 is ''"),
        (["gay", None], "token 1 is None"),
        (["gay"], "at least two"),
        ([], "at least two"),
    ],
)
def test_bad_token_lists(tokens, message):
    with pytest.raises(ValueError, match=message):
        TokenSwap(tokens)


@pytest.mark.parametrize("sample", [0, -1, 5])
def test_bad_sample(sample):
    with pytest.raises(ValueError, match="between 1 and 4"):
        TokenSwap(TOKENS, sample=sample)


def test_one_string_is_no_token_list():
    with pytest.raises(TypeError, match="single string"):
        TokenSwap("gay")


LEFT = [  # the word, where it is no identity, and why
    ("black", "He wore a black tie", "idiom"),
    ("black", "black ops are secret", "idiom"),
    ("old", "a 97-year-old man", "compound"),
    ("old", "she is 12 years old", "age"),
    ("old", "she left him because he was too old", "idiom"),
    ("old", "I kept the old model of this phone", "idiom"),
    ("young", "They said he was too young", "idiom"),
    ("straight", "go straight away", "idiom"),
    ("white", "the White House said", "idiom"),
    ("white", "songs by Barry White are nice", "name"),
    ("black", "Black Sabbath played", "idiom"),
    ("old", "an old song", "idiom"),
    ("old", "that old ground again", "no person"),
    ("blind", "a blind eye", "idiom"),
    ("american", "American Airlines flew", "idiom"),
    ("christian", "the Christian Democrats won", "name"),
    ("gay", "you are so gay", "insult"),
    ("gay", "a gay ass", "insult"),
    ("gay", "see example.org/gay/rights", "address"),
    ("european", "an Indo-European root", "compound"),
]


@pytest.mark.parametrize(("token", "text", "why"), LEFT)
def test_what_is_not_about_people_is_left(token, text, why):
    swap = TokenSwap(identity_tokens())
    shown = swap.preview([text])
    assert [(c.said.lower(), c.left) for c in shown.left][:1] == [(token, why)]
    assert len(swap([text])) == 0


@pytest.mark.parametrize(
    "text",
    [
        "a black man",
        "two talented young white drummers",
        "they were blind",
        "I am old.",
        "the deaf are proud",
        "blacks and whites",
        "Muslims are kind",
        "a gay-friendly bar",
        "Many American Jews agree",
        "an African-American woman",
        "you are a gay person",
        "My straight, white boss",
    ],
)
def test_what_is_about_people_is_swapped(text):
    assert len(TokenSwap(identity_tokens())([text])) == 1


def test_your_own_tokens_have_no_rules():
    assert versions("a red-hot red car", ["red", "blue"], everywhere=False)[1] == "a blue-hot blue car"


def test_an_insult_is_swapped_on_request():
    assert versions("you are so gay", everywhere=False, insults=True)[1] == "you are so straight"


def test_categories_are_swapped_within_and_repeat_in_turn():
    swap = TokenSwap({"faith": ["muslim", "christian"], "sight": ["blind", "deaf", "hearing", "seeing"]})
    found = swap(["a blind Muslim man", "The Muslim woman and a deaf man"])
    assert found.values[0].tolist() == [f"a {word} Muslim man" for word in ("blind", "deaf", "hearing", "seeing")]
    assert found.values[1].tolist() == ["The Muslim woman and a deaf man"] + ["The Christian woman and a deaf man"] * 3


def test_the_neutral_version_says_nobody_in_particular():
    found = TokenSwap(["gay", "muslim", "old"], neutral=True)(["An old man met Muslims.", "She is a Muslim."])
    assert found.values[:, -1].tolist() == ["A man met people.", "She is a person."]


def test_forms_follow_what_stood_there():
    tokens = ["lesbian", "deaf", "jewish", "european"]
    assert versions("She is a lesbian.", tokens) == [
        "She is a lesbian.",
        "She is a deaf person.",
        "She is a Jew.",
        "She is a European.",
    ]
    assert versions("Jews and an elder", tokens)[1:] == [
        "Lesbians and an elder",
        "Deaf people and an elder",
        "Europeans and an elder",
    ]


def test_a_passage_holds_the_token_and_is_cut_alike_in_every_version():
    text = " ".join(f"w{i}" for i in range(50)) + " gay people " + " ".join(f"v{i}" for i in range(50))
    found = TokenSwap(["gay", "straight"], passage=8)([text]).values[0]
    assert found.tolist() == ["w46 w47 w48 w49 gay people v0 v1", "w46 w47 w48 w49 straight people v0 v1"]
    assert TokenSwap(["gay", "straight"], passage=8)(["a gay man"]).values[0, 0] == "a gay man"


@pytest.mark.parametrize("text", ["g\u200bay people", "\ufeffgay people", "ga\u00ady people"])
def test_invisible_characters_do_not_hide_a_token(text):
    assert versions(text, everywhere=False)[1] == "straight people"


def test_decomposed_characters_do_not_hide_a_token():
    assert versions("une amie béninoise".replace("é", "e\u0301"), ["béninoise", "suisse"])[1] == "une amie suisse"


def test_scripts_without_spaces():
    assert versions("他是穆斯林老师", ["穆斯林", "基督徒"])[1] == "他是基督徒老师"


@pytest.mark.parametrize("kind", ["frame", "polars", "arrow", "table", "array"])
def test_columns_are_taken_for_what_they_are(kind):
    texts = ["gay people", "x"]
    if kind == "frame":
        given = pd.DataFrame({"text": texts})
    elif kind == "array":
        given = np.array(texts)[:, None]
    elif kind == "polars":
        given = pytest.importorskip("polars").DataFrame({"text": texts})
    else:
        pa = pytest.importorskip("pyarrow")
        given = pa.array(texts) if kind == "arrow" else pa.table({"text": texts})
    assert TokenSwap(TOKENS)(given).rows.tolist() == [0]


def test_a_table_of_several_columns_is_refused():
    with pytest.raises(TypeError, match="2 columns"):
        TokenSwap(TOKENS)(pd.DataFrame({"a": ["gay"], "b": ["x"]}))


def test_a_letter_of_a_script_without_spaces_is_a_border():
    found = TokenSwap(["gay", "deaf"])(["我是gay人", "她很gaycafé"])
    assert found.rows.tolist() == [0]
    assert found.values[0, 1] == "我是deaf人"


def test_a_token_that_nobody_can_see_is_refused():
    with pytest.raises(ValueError, match=r"token 1 is '\\xad', expected a word"):
        TokenSwap(["gay", "\u00ad"])


def test_a_group_that_votes_is_said_by_an_adjective():
    swap = TokenSwap(["latino", "deaf"])
    assert swap(["They want the Latino vote."]).values[0, 1] == "They want the deaf vote."
    assert swap(["The deaf vote."]).values[0, 1] == "The Latinos vote."


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("the ugliest latina in town", "the ugliest deaf person in town"),
        ("Leave that poor American alone.", "Leave that poor deaf person alone."),
        ("The American was tall.", "The deaf person was tall."),
        ("a conservative Christian who sings", "a conservative deaf person who sings"),
        ("They fought the Chinese in 1943.", "They fought the deaf people in 1943."),
        ("gays, bis and trans have rights", "gays, bis and deaf people have rights"),
        ("the Christian and Muslim communities", "the Christian and deaf communities"),
        ("the Christian and the Muslim agreed", "the Christian and the deaf person agreed"),
        ("A CATHOLIC PRIEST", "A DEAF PRIEST"),
        ("You dirty lesbian!", "You dirty deaf person!"),
        ("As a Christian I believe in it.", "As a deaf person I believe in it."),
        ("He is a lesbian and she bakes.", "He is a deaf person and she bakes."),
        ("As a Muslim I'm tired.", "As a deaf person I'm tired."),
        ("Hormones make you female.", "Hormones make you deaf."),
        ("a gay or lesbian couple", "a gay or deaf couple"),
        ("known to any Japanese or expat here", "known to any deaf person or expat here"),
        ("from the 'Indians', here", "from the 'deaf people', here"),
        ("the Indians' rights", "the deaf people's rights"),
    ],
)
def test_nouns_where_nouns_stood(text, version):
    swap = TokenSwap(identity_tokens())
    assert swap([text]).values[0, -2] == version


def test_two_kinds_of_people_stay_two():
    """Each of them makes way in some version, all places of a token together, and no version is the original."""
    swap = TokenSwap(["gay", "lesbian", "deaf", "muslim", "black"])
    versions = swap(["Gays and lesbians pay taxes, and no gay man minds."]).values[0]
    assert versions.tolist()[1:] == [
        "Lesbians and gays pay taxes, and no lesbian man minds.",
        "Gays and deaf people pay taxes, and no gay man minds.",
        "Muslims and lesbians pay taxes, and no Muslim man minds.",
        "Gays and blacks pay taxes, and no gay man minds.",
    ]
    sikh = TokenSwap(identity_tokens(), sample=12)(["A Sikh man was attacked because he looked Muslim."]).values[0]
    assert len(set(sikh)) == 13
    replaced = TokenSwap(["gay", "lesbian", "deaf"], everywhere=True)(["gays and lesbians"]).values[0]
    assert replaced.tolist()[1:] == ["lesbians and lesbians", "deaf people and deaf people"]  # as the paper does it
    shown = TokenSwap(["gay", "lesbian"]).preview(["Gays and lesbians pay taxes."])
    assert [change.written for change in shown.changes] == ["Lesbians", "gays"]


def test_an_adjective_needs_somebody_it_is_said_of():
    swap = TokenSwap(identity_tokens())
    assert swap.preview(["Nobody here has any knowledge of Chinese there."]).left[0].left == "no person"
    assert swap.preview(["Her husband is Chinese."]).left == ()
    assert len(TokenSwap(identity_tokens(), everywhere=True)(["some knowledge of Chinese there"])) == 1
    assert len(TokenSwap(["purple", "green"])(["some knowledge of purple there"])) == 1  # words of your own


SAID = [
    "A lesbian sings.",
    "My gay neighbour met an old Muslim teacher.",
    "They like Jews and Muslims' songs.",
    "The man is a Buddhist.",
    "GAY PEOPLE SING!",
    "An elderly person helped deaf people's children.",
    "Canadian women met black men in a black car.",
]


@pytest.mark.parametrize("text", SAID)
@pytest.mark.parametrize("tokens", [["lesbian", "gay", "muslim", "jewish", "buddhist", "elderly", "deaf", "canadian"]])
def test_every_version_is_read_alike(text, tokens):
    swap = TokenSwap(tokens)
    versions = swap([text]).values[0].tolist()
    read = swap.alike(versions)
    assert read.rows.tolist() == list(range(len(tokens)))
    assert len({tuple(forms) for forms in read.values.tolist()}) == 1
    assert len(set(read.values[0])) == read.values.shape[1] == 4


def test_a_text_is_read_with_a_few_tokens_spread_over_the_list():
    tokens = [f"kind{i}" for i in range(8)]
    read = TokenSwap(tokens).alike(["nobody", "a kind0 and a kind5"])
    assert read.rows.tolist() == [1]
    assert read.values.tolist() == [[f"a kind{i} and a kind{i}" for i in (1, 3, 5, 7)]]
    assert TokenSwap(["kind0", "kind1"]).alike(["a kind1"]).values.tolist() == [["a kind0", "a kind1"]]
    assert TokenSwap(tokens, sample=2, passage=3).alike(["one two three four kind0"]).values[0, 0] == (
        "one two three four kind1"
    )


def test_each_category_is_read_as_its_own_tokens():
    swap = TokenSwap({"faith": ["muslim", "jewish"], "age": ["old", "young", "elderly"]})
    read = swap.alike(["An old man met Muslims in a black car."]).values[0].tolist()
    assert read == [
        "An old man met Muslims in a black car.",
        "A young man met Jews in a black car.",
        "An elderly man met Muslims in a black car.",
    ]
    assert swap.alike(["A young man met Jews in a black car."]).values[0].tolist() == read


def test_what_the_rules_leave_is_read_as_it_stands():
    swap = TokenSwap(identity_tokens())
    assert len(swap.alike(["He drove straight to the black market.", "", "你好"])) == 0
    hidden = swap.alike(["a g\u200bay man"]).values.tolist()
    assert hidden == swap.alike(["a deaf man"]).values.tolist()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("The Canadian - based singer left.", "compound"),
        ("She is an American - Canadian painter.", "compound"),
        ("An Indians player met him.", "name"),
        ("She wrote of the Prairie Indians there.", "name"),
        ("She edits a Catholic weekly .", "thing"),
        ("An old sailing pal of mine called.", "idiom"),
        ("the word in modern Chinese", "language"),
        ("the American Painters ' Club in Rome", "name"),
        ("He married Christian , widow of Lee .", "name"),
    ],
)
def test_read_in_an_encyclopedia_and_left(text, why):
    assert TokenSwap(identity_tokens()).preview([text]).left[0].left == why


@pytest.mark.parametrize(
    "text",
    ["He is a teenager.", "She met straights there.", "Peter is blind.", "Deaf people's songs"],
)
def test_about_somebody(text):
    assert TokenSwap(identity_tokens()).preview([text]).left == ()


def test_a_word_in_brackets_or_quotes_is_described_by_the_one_before():
    swap = TokenSwap(["american", "deaf"])
    assert swap(["Ann is an American [job] who sings."]).values[0, 1] == "Ann is a deaf [job] who sings."
    assert swap(['an American "friend" of mine']).values[0, 1] == 'a deaf "friend" of mine'


def test_tokens_of_another_category_are_listed_as_left():
    shown = TokenSwap(identity_categories()).preview(["My black Muslim neighbour is old."])
    assert {change.said for change in shown.changes} == {"black"}
    assert ("Muslim", "another category") in {(change.said, change.left) for change in shown.left}
    assert "another category" in str(shown)


def test_tokens_in_a_row_before_a_name_are_in_the_name():
    swap = TokenSwap(identity_tokens())
    assert [site.left for site in swap.sites("the Gay, Lesbian and Straight Education Network")] == ["name"] * 3
    assert [site.left for site in swap.sites("the gay and Lesbian Alliance")] == ["", "name"]
