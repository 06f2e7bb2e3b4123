import pytest

from evenhand.counterfactuals import TokenSwap, identity_tokens
from evenhand.counterfactuals.context import left_because


def reason(text, word, **options):
    start = text.index(word)
    return left_because(text, start, start + len(word), word.lower(), **{"plural": False, "insults": False, **options})


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
    assert reason("a gay website", "gay") == "thing"


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
    assert reason("all over the gay web", "gay") == "thing"
    assert reason("all over some gay web", "gay") == "insult"
    assert reason("a Jewish dance tune", "Jewish") == "thing"
    assert reason("a Jewish dancer", "Jewish") == ""


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("the Indian and Pakistani rivers", "Indian"),
        ("a list of Canadian, Finnish or Polish lakes", "Canadian"),
        ("The Muslim conquests began", "Muslim"),
        ("the old (Christian) kingdom fell", "Christian"),
        ("he sells gay novels", "gay"),
        ("A BUDDHIST CALENDAR HANGS THERE", "BUDDHIST"),
        ("the file is a Japanese PDF with notes", "Japanese"),
        ("lesbian poetry of the century", "lesbian"),
        ("lesbian jelly fights", "lesbian"),
        ('he hosts a "Christian" radio hour', "Christian"),
        ("American and British English differ", "American"),
        ("a letter by Hans von White", "White"),
        ("a book on European Romanesque churches", "European"),
    ],
)
def test_what_something_is_like_is_not_who_somebody_is(text, token):
    assert reason(text, token) in ("thing", "name")


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("the Indian and Pakistani drivers", "Indian"),
        ("Canadian and Polish citizens", "Canadian"),
        ("a Muslim baker", "Muslim"),
        ("my (Christian) aunt came", "Christian"),
        ("he met gay novelists", "gay"),
        ("Tom is gay lol", "gay"),
        ("A BUDDHIST TEACHER LIVES THERE", "BUDDHIST"),
        ("an American CEO resigned", "American"),
        ("gay rights matter", "gay"),
        ("people of Jewish heritage", "Jewish"),
        ("Muslim and Hindu", "Muslim"),
    ],
)
def test_what_is_said_of_somebody_is_swapped(text, token):
    assert reason(text, token) == ""


def test_a_language_is_one_and_people_are_many():
    assert reason("I left the Japanese where it is", "Japanese") == "language"
    assert reason("the Chinese means something else", "Chinese") == "language"
    assert reason("the Chinese are here", "Chinese") == ""


def test_a_section_of_a_page_is_an_address():
    assert reason("see Old Chinese#Tones there", "Chinese") == "address"


@pytest.mark.parametrize(
    ("text", "token", "why"),
    [
        ("the latin american painters", "american", "compound"),
        ("a south african nurse", "african", "compound"),
        ("some polish american nurse", "american", "compound"),
        ("the southern dialects of Japanese", "Japanese", "language"),
        ("I guess that's probably lesbian.", "lesbian", "insult"),
        ("The Society of American Gardeners met", "American", "name"),
        ("see Talk:Letters of a Jew", "Jew", "address"),
        ("an old, old tale", "old", "no person"),
        ("those teenage racist blogs", "teenage", "no person"),
        ("my new phone case is honestly gay", "gay", "insult"),
        ("the Old Chinese (and later) forms", "Chinese", "language"),
        ("HE SAID GAY GAY GAY AND LEFT", "GAY", "repeated"),
    ],
)
def test_names_of_bodies_heads_of_phrases_and_shouts(text, token, why):
    assert reason(text, token) == why


def test_beside_them_people_are_still_people():
    assert reason("an old, old man", "old") == ""
    assert reason("a society of American gardeners", "American") == ""
    assert reason("those teenage racists", "teenage") == ""
    assert reason("the american painters", "american") == ""
    assert reason("these foolish american painters", "american") == ""
    assert reason("these american painters", "american") == ""


@pytest.mark.parametrize(
    ("text", "word", "why"),
    [
        ("an old Japanese car", "old", "no person"),  # the identity that follows is no person's either
        ("a white male pug", "white", "no person"),
        ("my black Labrador is older than you", "black", "no person"),  # "older" names nobody
        ("he came out all white many people saw it", "white", "no person"),
        ("an Indian lager", "Indian", "thing"),
        ("a Chinese red", "Chinese", "thing"),
        ("Stan's dog being gay", "gay", "no person"),
        ("The dog is old, deaf and blind.", "deaf", "no person"),
        ("The Chinese for tea is cha", "Chinese", "language"),
        ("this website is soooo gay", "gay", "insult"),
        ("see Votes:Deletion/Persecution of gays", "gays", "address"),
        ("He translated it from Chinese into English", "Chinese", "language"),
        ("English is harder than Japanese, he says", "Japanese", "language"),
        ("the Mexican National Welterweight Championship", "Mexican", "name"),
        ("the American Family Association sued", "American", "name"),
        ('They played "American Woman" twice', "American", "name"),
        ("Is Latino as a word older?", "Latino", "word"),
        ("what you are too blind to see", "blind", "idiom"),
        ("whisk the whites until stiff", "whites", "idiom"),
        ("The female connector and the male one", "male", "no person"),
    ],
)
def test_more_that_is_about_nobody(text, word, why):
    token = {"whites": "white", "gays": "gay"}.get(word, word.lower())
    start = text.rindex(word)
    plural = word in ("whites", "gays")
    assert left_because(text, start, start + len(word), token, plural=plural, insults=False) == why


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("an old Japanese woman", "old"),
        ("an old Japanese", "old"),
        ("a white male who sings", "white"),
        ("American college graduates", "American"),
        ("a Taoist rents the flat", "Taoist"),
        ("the Muslim and the Sikh alike", "Sikh"),
        ("a baker, blind from birth, sang", "blind"),
        ("My aunt went deaf.", "deaf"),
        ("Is Tom Muslim?", "Muslim"),
        ("They live in Asia. White people live here", "White"),
        ("it is about me being old and ill", "old"),
        ("one of them is white", "white"),
        ("Japanese President Sato and an American Nurse", "Japanese"),
        ("That homosexual over there is a friend", "homosexual"),
        ('"Jews Rule!" he cried', "Jews"),
    ],
)
def test_more_that_is_about_somebody(text, word):
    token = {"Jews": "jewish"}.get(word, word.lower())
    start = text.index(word)
    assert left_because(text, start, start + len(word), token, plural=word == "Jews", insults=False) == ""


def test_teenagers_are_people():
    assert left_because("a friend of teenagers", 12, 21, "teenage", plural=True, insults=False) == ""
    assert reason("a teenage dream", "teenage") == "no person"


def test_the_name_of_a_group():
    assert reason("he left the True Torah Jews in May", "Jews", plural=True) == "name"
    assert reason("he met Many American Jews in May", "Jews", plural=True) == ""
    assert reason("In May, Polish Jews left", "Jews", plural=True) == ""


def test_animals_and_endearments():
    assert reason("what you saw is a juvenile male.", "male") == "no person"
    assert reason("what you saw is a tall male.", "male") == ""
    assert reason("poor old me", "old") == "idiom"
    assert reason("Thanks, old man.", "old") == "idiom"
    assert reason("A tall, old man sang.", "old") == ""
    assert reason("his black cock ate the white dog", "black") == "idiom"
    assert reason("any old rope", "old") == "idiom"
    assert reason("a poor old woman", "old") == ""


@pytest.mark.parametrize(
    ("text", "word", "why"),
    [
        ("Young adult romance sells well", "Young", "idiom"),
        ("an outlet for both the American and the Danish charger", "American", "thing"),
        ("a Mexican-born baker", "Mexican", "compound"),
        ("an Indian born novelist", "Indian", "compound"),
        ("she applied for Canadian citizenship", "Canadian", "thing"),
        ("her Japanese nationality", "Japanese", "thing"),
        ("people of African descent", "African", "thing"),
        ("a strong Indian accent", "Indian", "thing"),
        ("u r blind if u missed that", "blind", "idiom"),
        ("the mayor is blind to all of this", "blind", "idiom"),
        ("are you blind, mate", "blind", "insult"),
        ("You must be blind", "blind", "insult"),
        ("a young werewolf", "young", "no person"),
        ("a blind vampire hunts", "blind", "no person"),
        ("that old sorcerer", "old", "no person"),
        ("the white monsters", "white", "no person"),
    ],
)
def test_kinds_of_books_plugs_papers_and_mythical_beings_are_nobody(text, word, why):
    start = text.index(word)
    assert left_because(text, start, start + len(word), word.lower(), plural=False, insults=False) == why


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Young adult patients wait", "Young"),
        ("a young adult who sings", "young"),
        ("the American and the Danish drivers", "American"),
        ("the American and the Dane are here", "American"),
        ("an Indian born in Pune", "Indian"),
        ("an American citizen", "American"),
        ("my cousin is blind, and he cooks", "blind"),
        ("a young prince", "young"),
    ],
)
def test_beside_them_somebody_is_meant(text, word):
    assert reason(text, word) == ""


def test_being_one_is_about_people():
    assert reason("He was fired for being black.", "black") == ""
    assert reason("Being old is no crime", "old") == ""
    assert reason("I think being Chinese is great", "Chinese") == ""
    assert reason("Is it okay to be white?", "white") == ""
    assert reason("I am proud to be black and British.", "black") == ""
    assert reason("The wall has to be white.", "white") == "no person"
    assert reason("Being old, the car broke down.", "old") == "no person"
    assert reason("Instead of being white, the walls were grey.", "white") == "no person"


def test_those_for_something_are_a_group():
    assert reason("Jews for Jesus meet at noon.", "Jews", plural=True) == "name"
    assert reason("He blames Jews for Auschwitz.", "Jews", plural=True) == ""


def test_the_male_of_a_species():
    assert reason("The female wren sings to the male.", "male") == "no person"
    assert reason("the woman hit the male.", "male") == ""


def test_black_and_white_people_are_people():
    assert reason("Black and white people sat together.", "Black") == ""
    assert reason("Black and white photos hung there.", "Black") == "idiom"
    assert reason("it is black and white.", "black") == "idiom"


def test_marks_beside_a_word_hide_neither_people_nor_idioms():
    swap = TokenSwap(identity_tokens())
    for text in ("<b>gay</b> men cook", "**gay** men cook", "&quot;gay&quot; men cook", "He is <strong>gay</strong>."):
        assert [site.left for site in swap.sites(text)] == [""], text
    assert [site.left for site in swap.sites("<b>Black</b> coffee for me")] == ["idiom"]
