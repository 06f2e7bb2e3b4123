import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer

from evenhand import certify
from evenhand.counterfactuals import GenderSwap, TokenSwap
from evenhand.datasets import mentions, templates
from evenhand.error_rates import error_rates
from evenhand.evaluation import balanced_accuracy, ctf_std, prediction_consistency
from evenhand.output_distances import total_variation
from evenhand.text import TextClassifier, without_blind
from evenhand.text.validation import split
from evenhand.variations import Variations

COUNTS = HashingVectorizer(n_features=128, ngram_range=(1, 1), norm="l2")
COMMENTS = templates(500, seed=0)
TOKENS = list(COMMENTS.groups.columns)
TEXTS, Y = COMMENTS.texts[:350], COMMENTS.y[:350]
HELD_OUT, Y_HELD_OUT = COMMENTS.texts[350:], COMMENTS.y[350:]


def embed(texts):
    return COUNTS.transform(texts).toarray()


def classifier(method="sensei", **options):
    settings = {"hidden": (30,), "steps": 120, "lr": 3e-3, "k": 8, "batch_size": 64}
    return TextClassifier(embed, TokenSwap(TOKENS, sample=4), method, **{**settings, **options})


@pytest.fixture(scope="module")
def fitted():
    return {method: classifier(method).fit(TEXTS, Y) for method in ("plain", "sensei", "clp", "sensr")}


@pytest.mark.parametrize("method", ["sensei", "clp", "sensr"])
def test_fair_methods_are_more_consistent_and_nearly_as_accurate(fitted, method):
    versions = TokenSwap(TOKENS)(HELD_OUT)

    def as_they_stand(model):
        features = model.features_
        raw = versions.map(lambda t: features.shrinkage_(features.scaled(features.vectors(t))))
        return raw.map(lambda x: model.calibration_.probabilities(model._logits(x))[:, 1])

    ctf = {name: ctf_std(as_they_stand(m)) for name, m in fitted.items()}  # what training achieves
    accuracy = {name: balanced_accuracy(Y_HELD_OUT, m.predict(HELD_OUT)) for name, m in fitted.items()}
    assert ctf[method] < 0.7 * ctf["plain"]
    assert accuracy[method] > accuracy["plain"] - 0.08


def test_the_choice_is_the_rule(fitted):
    model = fitted["sensei"]
    assert [row["rho"] for row in model.choice_] == [0.03, 0.06, 0.1]
    losses = {row["rho"]: model.plain_["skill"] - row["skill"] for row in model.choice_}
    assert min(losses.values()) > model.max_accuracy_loss  # here tokens and labels go together: fairness costs
    assert model.rho_ == min(losses, key=losses.get)
    assert "the one that loses least was taken" in model.chosen_because_


@pytest.mark.parametrize("method", ["plain", "sensei"])
def test_what_was_tried_says_how_it_decides(fitted, method):
    model = fitted[method]
    row = next(row for row in model.choice_ if row["rho"] == model.rho_)
    _, held = split(np.searchsorted(model.classes_, Y), model.validation_fraction, model.random_state, list(TEXTS))
    assert row["ba"] == pytest.approx(balanced_accuracy(Y[held], model.predict([TEXTS[i] for i in held])))
    features = model.features_
    versions, _ = without_blind(model.swaps(TEXTS).select(held).map(features.vectors))
    versions = versions.map(lambda x: features.shrinkage_(features.scaled(x)))
    p = versions.map(lambda x: model.calibration_.probabilities(model._logits(x))[:, 1]).values
    assert row["pc"] == pytest.approx(prediction_consistency((p >= model.threshold_).astype(int)))
    assert 0 < row["pc"] <= 1


def test_no_more_harmless_validation_texts_are_flagged_than_by_the_plain_model(fitted):
    for method, model in fitted.items():
        _, held = split(Y, 0.2, 0)
        flagged = model.predict([TEXTS[i] for i in held])
        assert error_rates(Y[held], flagged, {}).fpr <= model.plain_fpr_ + 1e-12, method
        assert 0 <= model.threshold_ <= 1


def test_probabilities_predictions_and_decisions_agree(fitted):
    model = fitted["sensei"]
    p = model.predict_proba(HELD_OUT)
    assert p.sum(axis=1) == pytest.approx(1)
    assert (model.predict(HELD_OUT) == (p[:, 1] >= model.threshold_)).all()
    assert ((model.decision_function(HELD_OUT) >= 0) == (p[:, 1] >= model.threshold_)).all()


def test_columns_and_labels_of_any_kind():
    names = np.where(Y == 1, "toxic", "fine")
    model = classifier("plain", steps=30).fit(pd.DataFrame({"comment": TEXTS}), pd.Series(names))
    assert set(model.predict(pd.Series(HELD_OUT[:5]))) <= {"toxic", "fine"}


def test_several_classes():
    y = np.array([len(text) % 3 for text in TEXTS])
    model = classifier("sensei", steps=30, rho=1.0).fit(TEXTS, y)
    assert model.predict_proba(HELD_OUT).shape == (150, 3)
    assert np.isnan(model.threshold_)
    assert (model.predict(HELD_OUT) == model.predict_proba(HELD_OUT).argmax(1)).all()


def test_sentences_about_others_teach_what_the_data_do_not_mention():
    about = Variations(np.array([["I am a zebra", "I am a giraffe", "I am a walrus"]], dtype=object), [0])
    options = {"rho": 0.1, "steps": 20}
    without, told = (classifier(about=some, **options).fit(TEXTS, Y) for some in (None, about))

    def moved(model):
        x = model.features_.transform(["a zebra ate", "a walrus ate"])
        rest = (x[0] - x[1]) - model.fair_metric_.directions.numpy() @ (
            model.fair_metric_.directions.numpy().T @ (x[0] - x[1])
        )
        return np.linalg.norm(x[0] - x[1]), np.linalg.norm(rest)

    assert moved(told)[0] < 0.5 * moved(without)[0]  # the features count less
    assert moved(told)[1] < 0.5 * moved(told)[0]  # and the metric calls it free
    table = pd.DataFrame({"said": TEXTS, "length": [float(len(text)) for text in TEXTS]})
    beside = classifier(about=about, text="said", **options).fit(table, Y)
    assert beside.predict_proba(table[:3]).shape == (3, 2)
    assert classifier("plain", about=about, steps=5).fit(TEXTS, Y).fair_metric_ is None


def test_mentions_lower_the_false_alarms_on_harmless_mentions():
    extra = mentions(TOKENS, 200, seed=1)
    other = mentions(TOKENS, 400, seed=2)
    harmless = [text for text, bad in zip(other.texts, other.y) if not bad and text not in set(extra.texts)]
    settings = {"method": "plain", "steps": 120}
    without = classifier(**settings).fit(TEXTS, Y)
    taught = classifier(mentions=(extra.texts, extra.y), **settings).fit(TEXTS, Y)
    assert taught.predict_proba(harmless)[:, 1].mean() < without.predict_proba(harmless)[:, 1].mean() - 0.05


def test_blind_versions_are_left_out_and_counted():
    def short(texts):
        return embed([" ".join(text.split()[:4]) for text in texts])

    far = [f"one two three four five {text}" if i % 2 else text for i, text in enumerate(TEXTS)]
    with pytest.warns(UserWarning, match="look the same to the encoder"):
        model = TextClassifier(short, TokenSwap(TOKENS, sample=2), hidden=(5,), steps=5, k=2, rho=1.0).fit(far, Y)
    versions = TokenSwap(TOKENS, sample=2)(far)
    same = [np.ptp(short(list(row)), axis=0).max() == 0 for row in versions.values]
    assert model.blind_ == sum(same) > 50


def test_clone_and_pickle_of_an_unfitted_and_a_fitted_model(fitted):
    model = fitted["sensei"]
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(HELD_OUT) == model.predict_proba(HELD_OUT)).all()
    assert clone(model).get_params()["rho"] == "auto"


def test_the_same_seed_gives_the_same_model(fitted):
    again = classifier("sensei").fit(TEXTS, Y)
    assert (again.predict_proba(HELD_OUT) == fitted["sensei"].predict_proba(HELD_OUT)).all()


def test_over_the_listed_words_the_answer_is_the_same_by_construction(fitted):
    versions = TokenSwap(TOKENS)(HELD_OUT)
    for method, model in fitted.items():
        p = versions.map(lambda t, m=model: m.predict_proba(t)[:, 1]).values
        spread = np.ptp(p, axis=1).max()  # some processors round a row by where it stands in the batch
        assert spread > 0.01 if method == "plain" else spread < 1e-6, method
    found = certify(fitted["sensei"].pipeline_, versions, eps=0.0, output_distance=total_variation)
    assert 0 <= found.r_low <= found.r_high < 1e-6
    assert fitted["plain"].features_.alike is None
    asked = classifier(steps=20, rho=1.0, read_alike=False).fit(TEXTS, Y)
    assert np.ptp(versions.map(lambda t: asked.predict_proba(t)[:, 1]).values, axis=1).max() > 0.001


def test_a_word_that_is_in_no_list_is_read_as_it_stands(fitted):
    model = fitted["sensei"]
    texts = ["My gay friend sings.", "My purple friend sings.", "My green friend sings."]
    p = model.predict_proba(texts)[:, 1]
    assert len(set(p.round(9))) == 3
    x = model.features_
    assert (x.read(texts[1:]) == x.vectors(texts[1:])).all()


def test_a_swap_of_ones_own_reads_nothing_alike(fitted):
    swap = TokenSwap(TOKENS, sample=4)
    own = classifier(steps=20, rho=1.0).set_params(swaps=lambda texts: swap(texts)).fit(TEXTS, Y)
    never = classifier(steps=20, rho=1.0, read_alike=False).fit(TEXTS, Y)
    assert own.features_.alike is None
    assert (own.predict_proba(HELD_OUT) == never.predict_proba(HELD_OUT)).all()


def test_where_the_plain_model_is_kept_it_reads_as_it_did(monkeypatch):
    monkeypatch.setattr("evenhand.text.classifier.choose", lambda *_: (None, "the plain model is kept"))
    with pytest.warns(UserWarning, match="the plain model is"):
        model = classifier(steps=20).fit(TEXTS, Y)
    assert model.rho_ == 0
    assert (model.predict_proba(HELD_OUT) == classifier("plain", steps=20).fit(TEXTS, Y).predict_proba(HELD_OUT)).all()
    assert model.features_.alike is None


def test_both_genders_and_several_classes():
    texts = [
        f"{who} is a {job} {i % 7}." for i in range(30) for who in ("She", "He") for job in ("nurse", "cook", "dj")
    ]
    y = [text.split()[3] for text in texts]
    options = {"hidden": (10,), "steps": 40, "lr": 3e-3, "rho": 1.0}
    assert TextClassifier(embed, GenderSwap(), **options).fit(texts, y).features_.alike is None  # not unless asked for
    model = TextClassifier(embed, GenderSwap(), read_alike=True, **options).fit(texts, y)
    p = model.predict_proba(["She is a cook.", "He is a cook."])
    assert p.shape == (2, 3)
    assert np.ptp(p, axis=0).max() < 1e-9


def test_an_exact_certificate_over_the_versions(fitted):
    versions = TokenSwap([*TOKENS, "purple", "green"])(HELD_OUT)  # two that are in no list of the model
    found = certify(fitted["sensei"].pipeline_, versions, eps=0.1, output_distance=total_variation)
    net = fitted["sensei"].net_
    features = fitted["sensei"].features_
    p = versions.map(lambda t: net.predict_proba(features.transform(t))[:, 1]).values
    rest = p[found.rows]  # a fifth, drawn at random, only tunes
    once = len(set(versions.original))  # a text that comes again is a copy
    assert found.copies == len(p) - once > 0
    assert len(rest) == once - max(1, once // 5)
    assert found.r_low > 0
    assert found.r_low == found.r_high == pytest.approx(np.abs(rest - rest[:, :1]).max(axis=1).mean(), abs=1e-6)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"method": "magic"}, Y, "method is one of"),
        ({"swaps": None}, Y, "needs swaps"),
        ({"swaps": lambda texts: None, "read_alike": True}, Y, "read_alike=True needs swaps with a method alike"),
        ({"about": ["a cook"]}, Y, "about holds versions, .* got a list"),
        ({}, Y[:5], "one label for each"),
        ({}, np.zeros(350), "one class only"),
        ({}, [None, *Y[1:]], "y holds 1 missing labels, the first at position 0"),
        ({}, pd.Series([*Y[:-1], pd.NA], dtype="Int64"), "1 missing labels, the first at position 349"),
        ({"rho": "large"}, Y, "rho is a number or 'auto'"),
        ({"rho": [0.1, 0.2]}, Y, r"rho is a number or 'auto', got \[0.1, 0.2\]"),
        ({"k": 0}, Y, "k is a number of directions, 1 or more; got 0"),
        ({"shrink": -1}, Y, "shrink must be zero or positive, got -1"),
        ({"max_accuracy_loss": -0.1}, Y, "max_accuracy_loss must be zero or positive"),
        ({"validation_fraction": 1.0}, Y, "validation_fraction"),
        ({"mentions": (["x"], ["other"])}, Y, "mentions have 1 labels"),
    ],
)
def test_bad_input(options, y, message):
    model = classifier(steps=2).set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(TEXTS, y)


def test_swaps_that_give_no_versions_say_so():
    with pytest.raises(TypeError, match=r"swaps must give Variations .* it gave a list"):
        classifier(steps=2).set_params(swaps=lambda texts: [[text, text] for text in texts]).fit(TEXTS, Y)


def test_texts_without_any_token_have_nothing_to_be_fair_about():
    with warnings.catch_warnings(), pytest.raises(ValueError, match="no text has versions"):
        classifier(steps=2).fit(["a b", "c d", "e f", "g h"], [0, 1, 0, 1])


def test_few_tokens_in_few_sentences_have_fewer_directions_than_k():
    who = ("polnische", "deutsche")
    texts = [f"{said} {w} {i % 2}" for i in range(20) for said in ("hello", "away") for w in who]
    model = TextClassifier(embed, TokenSwap(who), rho=1.0, k=25, hidden=(5,), steps=5)
    model.fit(texts, ["away" in text for text in texts])
    assert 1 <= model.fair_metric_.directions.shape[1] < 25


def test_a_text_that_is_there_twice_is_not_validated_on():
    from evenhand.text.validation import split as _split

    texts = [f"text {i % 30}" for i in range(90)]
    codes = np.array([i % 30 % 2 for i in range(90)])
    fit, held = _split(codes, 0.2, 0, texts)
    assert not {texts[i] for i in fit} & {texts[i] for i in held}
    assert sorted([*fit, *held]) == list(range(90))
    assert len(held) == 18
    same, other = _split(codes[:30], 0.2, 0, texts[:30]), _split(codes[:30], 0.2, 0)
    assert [part.tolist() for part in same] == [part.tolist() for part in other]
    fit, held = _split(np.array([0] * 10 + [1] * 10), 0.2, 0, ["hello"] * 10 + ["bye"] * 10)
    assert len(held) == 4


def test_rows_of_a_table_with_one_text_are_validated_on_by_their_other_columns(monkeypatch):
    """Four rows in five have no text: as one row they would all train or all validate."""
    seen = []

    def split(codes, share, seed, rows):
        seen.append(_split(codes, share, seed, rows))
        return seen[-1]

    from evenhand.text.validation import split as _split

    monkeypatch.setattr("evenhand.text.classifier.split", split)
    table = pd.DataFrame({"t": [f"number {i}" if i % 5 == 0 else None for i in range(100)], "age": np.arange(100.0)})
    table = pd.concat([table, table], ignore_index=True)
    model = TextClassifier(embed, None, "plain", text="t", hidden=(3,), steps=2)
    model.fit(table, (table["age"] > 50).astype(int))
    (fit, held) = seen[0]
    assert len(held) == 40
    assert not set(table["age"].iloc[fit]) & set(table["age"].iloc[held])


def test_a_list_instead_of_a_swap_and_mentions_without_labels_are_refused():
    texts, y = ["gay", "straight"] * 10, [0, 1] * 10
    with pytest.raises(TypeError, match=r"such as TokenSwap\(tokens\) or GenderSwap\(\); got a list"):
        TextClassifier(embed, ["gay", "straight"]).fit(texts, y)
    with pytest.raises(ValueError, match=r"one label for each, got 2 and shape \(1,\)"):
        TextClassifier(embed, None, "plain", mentions=(["a", "b"], [0]), hidden=(3,), steps=2).fit(texts, y)


def test_the_threshold_lies_between_texts_not_on_one():
    from evenhand.text.validation import between as _between

    assert _between(np.array([0.1, 0.2, 0.9, 0.95]), 0.9) == pytest.approx(0.55)
    assert _between(np.array([0.3, 0.4]), 0.3) == 0.3  # nothing below
    assert _between(np.array([np.nextafter(0.5, 0), 0.5]), 0.5) == 0.5  # no room
    who = ["polnische", "deutsche", "jüdische", "türkische"]
    texts = [
        said.format(w) for said in ("Meine {} Nachbarin half.", "Du {} Idiot, weg.") for w in who for _ in range(15)
    ]
    y = [0] * 60 + [1] * 60
    model = TextClassifier(embed, TokenSwap(who), "plain", hidden=(20,), steps=60, lr=3e-3).fit(texts, y)
    assert (model.predict(texts) == y).all()


ABOUT = Variations(np.array([["I am a man.", "I am a king.", "I am a nun."]], dtype=object), np.array([0]))


def test_with_sentences_about_others_there_are_both_searches_and_their_mean():
    short = {"hidden": (5,), "steps": 3, "rho": "auto"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone, told, sensr, given = (
            TextClassifier(embed, TokenSwap(TOKENS), method, about=some, **{**short, **more}).fit(TEXTS, Y)
            for method, some, more in (
                ("sensei", None, {}),
                ("sensei", ABOUT, {}),
                ("sensr", ABOUT, {}),
                ("sensei", ABOUT, {"rho": 0.1}),
            )
        )
    assert [row["rho"] for row in alone.choice_] == [0.03, 0.06, 0.1]
    assert [row["rho"] for row in told.choice_] == [0.06, 8.0, 12.0, 6.69]
    assert [row["rho"] for row in given.choice_] == [0.1]
    assert [row["rho"] for row in sensr.choice_] == [0.0]


@pytest.mark.parametrize("method", ["sensei", "clp"])
def test_the_mean_is_taken_if_it_keeps_within_the_tolerance(method, monkeypatch):
    kept = classifier(method, about=ABOUT, max_accuracy_loss=1.0, steps=20).fit(TEXTS, Y)
    monkeypatch.setattr(TextClassifier, "_check", lambda *_: None)  # nobody may ask for a gain; here nothing is to pass
    refused = classifier(method, about=ABOUT, max_accuracy_loss=-1.0, steps=20).fit(TEXTS, Y)
    assert kept.net_.module_[0].out_features == 3 * 30
    assert kept.rho_ == kept.choice_[-1]["rho"]
    assert refused.net_.module_[0].out_features == 30


@pytest.mark.filterwarnings("ignore:the plain model is the most consistent")
@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)], ids=["None", "RandomState"])
def test_random_states_of_any_kind(random_state):
    model = classifier("sensei", about=ABOUT, max_accuracy_loss=1.0, steps=5, random_state=random_state).fit(TEXTS, Y)
    assert [row["rho"] for row in model.choice_] == [0.06, 8.0, 12.0, 6.69]


def test_networks_among_versions_start_elsewhere(monkeypatch):
    monkeypatch.setattr("evenhand.text.classifier.AMONG", (5.0, 5.0))
    model = classifier("sensei", about=ABOUT, max_accuracy_loss=1.0, steps=5).fit(TEXTS, Y)
    weight = model.net_.module_[0].weight.detach().numpy()
    assert weight.shape[0] == 90
    assert not np.allclose(weight[30:60], weight[60:])  # of the same weight, from the same start, they would be one


def test_no_versions_of_the_texts_but_of_sentences():
    about = Variations(np.array([["I am a man.", "I am a king.", "I am a nun."]], dtype=object), np.array([0]))
    people = {"sex": np.array(["f", "m"] * 175)}
    model = TextClassifier(embed, None, about=about, hidden=(5,), steps=3, rho=2.0)
    model.fit(TEXTS, Y, sensitive_features=people)
    assert model.rho_ == 2.0


def test_an_unfitted_classifier_says_so_and_labels_of_mentions_are_not_said():
    with pytest.raises(NotFittedError):
        TextClassifier(lambda texts: np.ones((len(texts), 2)), None, "plain").predict(["a"])
    rng = np.random.default_rng(0)
    odd = TextClassifier(lambda texts: rng.normal(size=(len(texts), 2)), None, "plain", steps=2)
    odd.set_params(mentions=(["a"], ["John has HIV"]))
    with pytest.raises(ValueError, match="mentions have 1 labels that y does not have") as refused:
        odd.fit([f"text {i}" for i in range(20)], ["yes", "no"] * 10)
    assert "John" not in str(refused.value)
