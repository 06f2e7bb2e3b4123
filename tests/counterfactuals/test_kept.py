"""What stays and says the gender that its person had: such a text has no other version, and beside it one that has."""

import pytest

from evenhand.counterfactuals import GenderSwap
from evenhand.counterfactuals.certainty import OF_ONE_GENDER, ONE_OF_SEVERAL, TWO_PEOPLE, WHOSE_NAME
from evenhand.counterfactuals.kept import keeps_gender
from evenhand.counterfactuals.nouns import UNSURE

SWAP = GenderSwap(nouns=True, names=(["Paul", "Norman", "Earl"], ["Anna", "Edith"]))


def why(text):
    reasons = {site.left for site in SWAP.sites(text) if site.left.startswith("unsure")}
    assert (SWAP.swap(text) is None) == bool(reasons)
    return reasons


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Anna Quill is a cook. She was named Businesswoman of the Year.", OF_ONE_GENDER),
        ("She is an actress and was nominated for Best Actress.", OF_ONE_GENDER),
        ("Paul Quill is a bowler. He won it as Best Supporting Actor.", OF_ONE_GENDER),
        ("Paul Quill is a bowler. He was man of the match.", OF_ONE_GENDER),
        ("Anna Quill keeps sheep. She blogs as The Happy Shepherdess.", OF_ONE_GENDER),
        ("Anna Quill is a cook, known to some. She is a smith and a proud Yorkshirewoman.", OF_ONE_GENDER),
        ("Paul Quill was a gentleman farmer. He grew beans.", OF_ONE_GENDER),
        ("Paul Quill, a painter and Chairman of the Board, sold his house.", OF_ONE_GENDER),
        ("The Duchess of Quill said she was glad.", OF_ONE_GENDER),
        ("Anna Quill, Duchess of Farley, is a cook. She sings.", OF_ONE_GENDER),
        ("Housewife Anna Quill sold her house.", OF_ONE_GENDER),
        ("Paul Quill III is a cook. He sings.", OF_ONE_GENDER),
        ("Paul Frederick Quill is a cook. He sings.", OF_ONE_GENDER),
        ("Anna Quill played for the women's team. She is a cook.", OF_ONE_GENDER),
        ("He is a graduate of a men's college.", OF_ONE_GENDER),
        ("He had the voice of an old man.", OF_ONE_GENDER),
        ("Paul Quill proclaimed himself “King Paul I” there.", OF_ONE_GENDER),
        ("Edith Quill (이디스, “Edith”) is a cook. She sings.", OF_ONE_GENDER),
        ("Paul Quill won it with his boy band.", OF_ONE_GENDER),
        ("Anna Quill is a cook. She tells of ending a pregnancy.", OF_ONE_GENDER),
        ("A sailor cuts his hand; York takes the injured man's place.", OF_ONE_GENDER),
        ("Fr Paul Quill said that he was glad.", WHOSE_NAME),
        ("Paul Earl Norman Quill said that he was glad.", WHOSE_NAME),
        ("Paul Quill is a cook. He led his fraternity.", OF_ONE_GENDER),
        ("Anna Quill 's maternity nurse said that she had gone.", OF_ONE_GENDER),
        ("Anna Quill is one of our best actresses. She won.", ONE_OF_SEVERAL),
        ("Anna Quill is one of the best sopranos there. She won.", ONE_OF_SEVERAL),
        ("Paul Quill uses the pseudonym “Norman Ray” for his column.", WHOSE_NAME),
        ("Zorabel Quill, known professionally as Earl, sold his house.", WHOSE_NAME),
        ("Cardinal Paul Quill said that he was glad.", WHOSE_NAME),
        ("Paul Quill is a judge and a former Lord Justice of Appeal. He sings.", OF_ONE_GENDER),
        ("Paul Quill is a cook. He succeeded his uncle as the fourth Baron Farley.", OF_ONE_GENDER),
        ("Anna Quill is a sprinter. She won the women's national title.", OF_ONE_GENDER),
        ("Anna Quill is a sprinter. She holds the record for women.", OF_ONE_GENDER),
        ("Anna binti Quill is a cook. She sings.", OF_ONE_GENDER),
        ("Paul Quill ( 崔岱远 ) is a cook. He sings.", OF_ONE_GENDER),
        ("He will be the best man at the wedding.", OF_ONE_GENDER),
        ("Anna Quill is a cook. She was crowned Miss Ohio.", OF_ONE_GENDER),
        ("The goddess raised her hand.", OF_ONE_GENDER),
        ("Paul Quill is a cook. He's honest, and he's a heck of a guy.", OF_ONE_GENDER),
        ("Mr Paul Quill joined the school as Headmaster. He sings.", OF_ONE_GENDER),
        ("Anna Quill is a cook and a proud Latina. She sings.", OF_ONE_GENDER),
        ("The bride wore her veil, and the groom wore a kilt.", OF_ONE_GENDER),
        ("5th Earl of Quill was captured with his dog.", OF_ONE_GENDER),
        ("Paul Quill celebrated his bar mitzvah.", OF_ONE_GENDER),
        ("One of a handful of female captains here, she is also a mother.", ONE_OF_SEVERAL),
        ("I'm Zorabel, a Dutch mom living in York.", WHOSE_NAME),
        ("Lord Ashworth is a peer. He sings.", WHOSE_NAME),
        ("Edith's son has passed his test.", OF_ONE_GENDER),
        ("Anna Quill picks grapes. She has been called the grandmother of it.", OF_ONE_GENDER),
        ("Anna Quill is a cook. She grew up in York, the daughter of a keeper.", OF_ONE_GENDER),
        ("Anna Quill was a nun and its Mother Superior. She sang.", OF_ONE_GENDER),
        ("Paul, the groom, arrived on his horse.", OF_ONE_GENDER),
        ("Councilman Rodriguez said he would vote against it.", WHOSE_NAME),
        ("Meet Anna! She is our cook and mum to two boys.", WHOSE_NAME),
        ("Professor Emeritus Norman Quill taught in York. He sang.", WHOSE_NAME),
        ("Anna Quill disguised herself as a man. She sang.", OF_ONE_GENDER),
        ("Anna Quill, never admitted, being a woman, kept her notes.", OF_ONE_GENDER),
        ("Anna Quill was born a sharecropper's daughter. She sang.", OF_ONE_GENDER),
        ("Anna Quill, a dinner lady, sang. She bakes.", OF_ONE_GENDER),
        ("Anna Quill is Head Girl. She sings.", OF_ONE_GENDER),
        ("Anna Quill won bronze in the women's sabre. She sings.", OF_ONE_GENDER),
        ("Anna Quill has been crowned Miss York. She sings.", OF_ONE_GENDER),
        ("Anna Quill Begum is a cook. She sings.", OF_ONE_GENDER),
        ("Anna Quill ( Greek : Θεοδοσία ) is a cook. She sings.", OF_ONE_GENDER),
        ("Paul Norman (Earl) Quill is a cook. He sings.", OF_ONE_GENDER),
        ("Abbess Hildegard sang. Her songs are old, and she wrote them.", WHOSE_NAME),
        ("Sister Edith Quill was known as Mama Agnes. She sang.", WHOSE_NAME),
        ("Sergeant First Class Earl Quill enlisted. Earl sings, and he cooks.", WHOSE_NAME),
        ("Her Majesty was accompanied by her dogs.", WHOSE_NAME),
        ("Paul Quill was appointed publisher in his place.", WHOSE_NAME),
        ("Paul toured with his band, an act that he bills as Norman Ray Paul.", WHOSE_NAME),
        ("Christian Paul Quill was a cook noted for his pies.", WHOSE_NAME),
        ("Father Paul Quill was ordained in York. He sings.", OF_ONE_GENDER),
        ("Anna Quill is the first woman to chair the board. She sings.", OF_ONE_GENDER),
        ("Anna Quill is a cook. The boys called her Aunt Dot.", WHOSE_NAME),
        ("Alhaji Paul Quill is a cook. He sings.", WHOSE_NAME),
        ('Paul "Earl" Quill is a cook. Dr. Earl sells his house.', WHOSE_NAME),
        ("The first was Zorro Quill himself, he said.", WHOSE_NAME),
        ("In his account of it, the cook Irving Katz says so.", WHOSE_NAME),
        ("A cook invites his wife and fiancée to his flat.", TWO_PEOPLE),
        ("We praise God in His mercy, and he is good.", UNSURE),
    ],
)
def test_a_word_that_stays_says_the_gender(text, reason):
    assert why(text) == {reason}


@pytest.mark.parametrize(
    "text",
    [
        "Robert Quill, or Bob, is a cook. He sings.",  # one name would stand for both
        "Robert Quill is a cook. He calls himself Bob.",
        "Robert Quill is a cook. He sings. Bob, as friends call him, bakes.",
        "Singh Quill is a cook. He sings.",
    ],
)
def test_a_name_that_nothing_can_stand_for(text):
    swap = GenderSwap(nouns=True, names=(["Robert", "Bob", "Singh"], ["Anna", "Susan"]))
    assert {site.left for site in swap.sites(text) if site.kind[0] == 0} == {WHOSE_NAME}
    assert swap.swap("Robert Quill is a cook. He sings.") is not None


def test_a_name_that_opens_a_text_and_stays():
    swap = GenderSwap(nouns=True, names=(["Paul", "Norman"], ["Georgia", "Anna"]))
    assert swap.swap("Georgia, from Georgia, says she has heard it.") is None
    assert swap.swap("Georgia Lee is a cook. She sings.") is not None


@pytest.mark.parametrize(
    "text",
    [
        "Paul Quill is a cook. He married the Businesswoman of the Year.",
        "Anna Quill is a cook. Her father was a gentleman farmer.",
        "Anna Quill is a cook. She met the Duke of Farley.",
        "A sailor cuts his hand; he takes the man in York to court.",
        "Paul Quill, a painter, met Chairman Ray near his house.",
        "She is a woman's-rights lawyer.",
        "Paul is a policeman in Prince Paul County. He sings.",
        "She had the voice of an old man.",
        "She coached the women's team.",
        "Anna Quill is a cook. She trained them for the women's final.",
        "Anna Quill is a cook. Her boss met Miss Ohio, and the best man.",
        "Paul Quill is a cook. He met the fourth Baron Farley.",
        "Paul Quill is a cook. His brother is a waiter.",
        "Paul Quill met the Headmaster. He sings.",
        "Anna Quill is a cook. She sang of the Baron.",
        "Anna Quill played for the men's team. She is a cook.",
    ],
)
def test_what_is_said_of_others(text):
    """Who coaches women, met a baron or saw a best man may be anybody."""
    assert why(text) == set()


def test_the_noun_at_the_end_of_a_sentence_about_the_subject_changes_too():
    text = "Paul Quill is a cook. He holds a degree from York and is a father of four."
    assert SWAP.swap(text).endswith("She holds a degree from York and is a mother of four.")
    assert SWAP.swap("She cooks and was headmistress of a school.") == "He cooks and was headmaster of a school."
    assert SWAP.swap("He supports York, poor man.") == "She supports York, poor woman."
    assert SWAP.swap("He won it for best actor in May.") == "She won it for best actress in May."
    assert SWAP.swap("She told dad jokes.") == "He told dad jokes."


def test_a_partner_whose_name_follows_what_they_are_stays():
    assert SWAP.swap("His late wife was the painter Edith Ray.") == "Her late wife was the painter Edith Ray."
    assert SWAP.swap("His late wife was a painter.") == "Her late husband was a painter."


def test_nobody_of_whom_no_gender_is_said_keeps_one():
    assert not keeps_gender("The Duchess said so.", [], None, None)
    assert not keeps_gender("The Duchess said so.", [], None, True)
    assert keeps_gender("The Duchess said so.", [], None, False)
