from evenhand.counterfactuals import GenderSwap
from evenhand.counterfactuals.short_names import called_too, short_form
from evenhand.counterfactuals.texts import word_list

NAMES = (["Edward", "Ted", "Paul", "Peter"], ["Susan", "Sue", "Anna", "Maria"])


def test_short_forms_change_with_the_name_and_alike():
    swap = GenderSwap(names=NAMES)
    text = "Edward Lee is a cook. Ted met Anna; his boss likes Ted."
    got = swap.swap(text).replace(".", "").split()
    assert got[0] in NAMES[1]
    assert got[5] in NAMES[1]
    assert got[5] == got[-1]
    assert got[7] == "Anna;"


def test_a_nickname_in_quotation_marks_changes_where_it_is_a_name():
    swap = GenderSwap(names=NAMES)
    assert '"Ted"' not in swap.swap('Edward "Ted" Lee lost his hat.')
    assert swap.swap('Edward "Ted" Lee lost his hat. Ted left.') == 'Susan "Susie" Lee lost her hat. Susan left.'
    assert '"Ted"' not in swap.swap('Edward Paul "Ted" Lee lost his hat.')
    assert '" Ted "' not in swap.swap('Edward " Ted " Lee lost his hat.')
    assert '"Doc"' in swap.swap('Edward "Doc" Lee lost his hat.')


def test_the_full_name_behind_a_short_form():
    assert called_too("The shop of Edward Lee is open. Ted sings.", "Ted", frozenset()) == {"Edward"}
    assert called_too("The shop of Edward Lee is open. Ted Ray sings.", "Ted", frozenset()) == frozenset()


def test_what_others_call_the_subject():
    assert called_too("Paul Lee sings; they call him Ted.", "Paul", frozenset(["Ted"])) == {"Ted"}
    assert called_too("Paul Lee sings; they call him Captain.", "Paul", frozenset(["Ted"])) == frozenset()


def test_a_short_form_that_no_list_has():
    assert called_too("Cassandra Lee left. Cass sings.", "Cassandra", frozenset()) == {"Cass"}
    got = GenderSwap(names=(["Paul"], ["Cassandra", "Anna"])).swap("Cassandra Lee lost her hat. Cass sings.")
    assert got == "Paul Lee lost his hat. Paul sings."


def test_somebody_elses_short_form_stays():
    assert called_too("Edward met Sue.", "Edward", frozenset(["Ted"])) == frozenset()
    assert (
        GenderSwap(sure=False, names=NAMES)
        .swap("Edward Lee met Ted's Diner staff; he ate.")
        .endswith("Ted's Diner staff; she ate.")
    )


def test_a_short_form_of_one_gender():
    assert short_form("Susan") == "Susie"
    assert short_form("Zoltan") == ""
    assert short_form("Alexander") not in ("Sandy", "Alex", "Sasha")


def test_the_list_names_nobody_twice():
    formal = [line.split()[0] for line in word_list("short_names")]
    assert len(formal) == len(set(formal))
    assert all(line.split()[0] not in line.split()[1:] for line in word_list("short_names"))
