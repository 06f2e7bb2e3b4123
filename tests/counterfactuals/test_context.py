import pytest

from evenhand.counterfactuals.context import left_because, names_people


def reason(text, word, **options):
    start = text.index(word)
    return left_because(text, start, start + len(word), word.lower(), **{"plural": False, "insults": False, **options})


@pytest.mark.parametrize("word", ["people", "teachers", "drummer", "pianist", "ladies", "musician", "boss's"])
def test_nouns_for_people(word):
    assert names_people(word)


@pytest.mark.parametrize("word", ["paper", "song", "number", "error", "list", "river", "year"])
def test_other_nouns(word):
    assert not names_people(word)


def test_a_vague_word_needs_somebody_it_describes():
    assert reason("an old neighbour", "old") == ""
    assert reason("an old friend", "old") == "idiom"
    assert reason("an old chair", "old") == "no person"
    assert reason("she is blind.", "blind") == ""
    assert reason("you old fool", "old") == ""


def test_an_insult_is_only_left_unless_asked_for():
    assert reason("this is so gay", "gay") == "insult"
    assert reason("this is so gay", "gay", insults=True) == ""
    assert reason("I am gay", "gay") == ""


def test_a_name_is_a_capital_beside_a_capital():
    assert reason("Neil met Claudia Black today", "Black") == "name"
    assert reason("The Black Women of Paris", "Black") == ""


def test_a_question_about_the_eyes_is_no_identity():
    assert reason("Are you blind or stupid?", "blind") == "insult"
    assert reason("Are you blind or stupid?", "blind", insults=True) == ""
    assert reason("I am blind, are you?", "blind") == ""


def test_an_insult_to_a_thing():
    assert reason("my blog is gay and pointless", "gay") == "insult"
    assert reason("no idea how gay this article is", "gay") == "insult"
    assert reason("you police some gay website", "gay") == "insult"
    assert reason("how gay men live", "gay") == ""
    assert reason("the singer is gay", "gay") == ""
    assert reason("a gay website", "gay") == ""


def test_two_origins_with_a_hyphen_between():
    assert reason("a serbian - american poet", "american") == "compound"
    assert reason("the poet - american by birth", "american") == ""


def test_languages_in_a_list():
    assert reason("if you know Chinese, read it", "Chinese") == "language"
    assert reason("I know Chinese people", "Chinese") == ""
    assert reason("I know little about Japanese, so", "Japanese") == "language"
    assert reason("a title in English, Okinawan, and Japanese)", "Japanese") == "language"
    assert reason("in Rome, Japanese tourists", "Japanese") == ""


def test_the_adjective_of_a_number_is_nobody():
    assert reason("it refers to the older, lower number of clinics", "older") == "no person"
    assert reason("books for the blind, and more", "blind") == ""


def test_a_few_words_over_and_over_speak_of_nobody():
    assert reason("bread is gay " * 9, "gay") == "repeated"
    assert reason("A gay man and a gay woman met a gay couple and gay friends in a quiet bar near home.", "gay") == ""
    assert reason("well " * 30 + "a gay man", "gay") == ""  # what is repeated is another word


def test_male_and_female_need_somebody_too():
    assert reason("a female singer", "female") == ""
    assert reason("he saw a tall male.", "male") == ""
    assert reason("the female senators and the male ones", "male") == ""
    assert reason("one female name is missing", "female") == "no person"
    assert reason("(male) circumcision", "male") == "no person"
    assert reason("two males met", "males", plural=True) == ""


def test_where_a_thing_is_from():
    assert reason("because it's mexican?", "mexican") == "thing"
    assert reason("because he's mexican?", "mexican") == ""


def test_an_address_in_pieces():
    assert reason("dq ; = kuching + japanese + suluks", "japanese") == "address"
    assert reason("french + japanese people", "japanese") == ""


def test_prefixes_without_a_hyphen():
    assert reason("an Afro American poet", "American") == "compound"
    assert reason("a retro American poet", "American") == ""


def test_more_insults_to_things():
    assert reason("that firm is gay as hell", "gay") == "insult"
    assert reason("it is big and gay I think", "gay") == "insult"
    assert reason("She is big and gay I think", "gay") == ""


def test_more_languages_and_compounds():
    assert reason("classifiers that are used in Chinese. So", "Chinese") == "language"
    assert reason("see Old Chinese.", "Chinese") == "language"
    assert reason("I can read Japanese, too", "Japanese") == "language"
    assert reason("trust in Chinese doctors", "Chinese") == ""
    assert reason("the American Indians of today", "American") == "idiom"
    assert reason("all over the gay web", "gay") == ""
    assert reason("all over some gay web", "gay") == "insult"
    assert reason("a Jewish dance tune", "Jewish") == "thing"
    assert reason("a Jewish dancer", "Jewish") == ""
