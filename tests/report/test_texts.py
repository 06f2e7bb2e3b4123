from evenhand.report.texts import render_texts

MODEL = {
    "balanced_accuracy": 0.8,
    "auc": 0.9,
    "fped": None,
    "consistency": 0.7,
    "terms": [
        {
            "term": "<gay>",
            "harmless": 3,
            "harmful": 0,
            "false_positive": 1 / 3,
            "false_positive_interval": [0.01, 0.9],
            "false_negative": None,
            "false_negative_interval": None,
        }
    ],
}
FINDINGS = {
    "models": {"plain": MODEL, "fair": MODEL | {"fped": 1.5}},
    "texts": {"trained": 1000, "held_out": 200},
    "versions": {"texts": 50, "each": 9, "blind": 4},
    "swap": "TokenSwap(2 tokens)",
    "warning": "The fair model flags 40 %",
    "certificate": {"refused": "only 3 texts"},
}
WORST = [
    {
        "text": "a gay <b> man",
        "worst_version": "a straight <b> man",
        "probability": 0.9,
        "probability_of_worst": 0.2,
        "decision_changes": True,
    }
]


def test_everything_is_shown_and_escaped():
    page = render_texts(FINDINGS, WORST, {"command": "evenhand train x.csv"})
    assert "a <mark>gay</mark> &lt;b&gt; man" in page
    assert "a <mark>straight</mark> &lt;b&gt; man" in page
    assert "0.90 → 0.20" in page
    assert "<b>" not in page
    assert "&lt;gay&gt;" in page
    assert "<span class='range'>0.33 <span class='note'>(0.01 to 0.90)</span></span>" in page
    assert "4 of them look the same to the encoder" in page
    assert "The fair model flags 40 %" in page
    assert "No certificate: only 3 texts" in page


def test_undefined_is_said():
    page = render_texts(FINDINGS, [], {})
    assert "<td>FPED</td><td>undefined</td><td>1.500</td>" in page
    assert "undefined</td></tr>" in page  # nobody to miss: no rate


def test_what_a_probability_is_of_and_what_was_left_out():
    said = FINDINGS | {
        "labels": ["<no>", "<yes>"],
        "texts": FINDINGS["texts"] | {"without_text": 2, "without_label": 0},
    }
    page = render_texts(said, WORST, {})
    assert "<th>probability of &lt;yes&gt;</th>" in page
    assert (
        "<td data-is='probability of &lt;yes&gt;'><span class='range'>0.90 → 0.20</span><br>" in page
    )  # on a narrow screen
    assert "left out because they have no text: 2." in page
    assert "no label" not in page
    assert "No held-out text has a version" in render_texts(said, [], {})


def test_both_models_are_shown_by_term_and_at_one_rate():
    fair = MODEL | {"terms": [MODEL["terms"][0] | {"false_positive": 2 / 3, "false_positive_interval": [0.1, 0.99]}]}
    fair |= {"false_negative_rate": 0.3}
    one = {"fpr": 0.25, "missed": {"plain": 0.15, "fair": 0.175}, "thresholds": {"plain": 0.5, "fair": 0.6}}
    said = FINDINGS | {"models": {"plain": MODEL | {"false_negative_rate": 0.1}, "fair": fair}, "at_one_fpr": one}
    page = render_texts(said | {"thresholds": {"plain": 0.5, "fair": 0.7}}, WORST, {})
    assert "<th>flagged, plain</th><th>flagged, fair</th>" in page
    for name, rate in (
        ("plain", "0.33 <span class='note'>(0.01 to 0.90)"),
        ("fair", "0.67 <span class='note'>(0.10 to"),
    ):
        assert f"<td data-is='flagged, {name}'><span class='range'>{rate}" in page
    assert "<td>harmful texts missed at one rate (0.250)</td><td>0.150</td><td>0.175</td>" in page
    assert "Thresholds: plain 0.500, fair 0.700, chosen on validation texts" in page
    assert "as was asked for" in render_texts(
        said | {"thresholds": {"plain": 0.9, "fair": 0.9}, "threshold_asked_for": True}, WORST, {}
    )


def test_a_passage_is_said_to_be_one_and_the_whole_text_has_its_own_probability():
    line = WORST[0] | {"row": 7, "passage": True, "probability": 0.55, "compared_with": 0.9, "words": "straight"}
    page = render_texts(FINDINGS, [line | {"moves_by": 0.7}], {})
    assert "a passage: </span>a <mark>gay</mark>" in page
    assert "0.90 → 0.20</span><br>with straight<br><strong>decision changes</strong>" in page
    assert "whole text 0.55" in page
    assert "compared with the passage" in page
    assert "a passage" not in render_texts(FINDINGS, [line | {"passage": False, "moves_by": 0.7}], {})


def test_what_reading_alike_cures_stands_beside_it():
    line = WORST[0] | {"row": 7, "passage": False, "worst_version": "a gay <b> man", "words": "", "moves_by": 0.0}
    line |= {"decision_changes": False, "probability_of_worst": 0.9, "compared_with": 0.9}
    for prefix, word, after in (("as_they_stand_", "deaf", 0.7), ("plain_", "white", 0.1)):
        other = {"worst_version": f"a {word} <b> man", "words": word, "moves_by": 0.9 - after, "compared_with": 0.9}
        other |= {"probability_of_worst": after, "decision_changes": after < 0.5}
        line |= {f"{prefix}{name}": value for name, value in other.items()}
    page = render_texts(FINDINGS, [line], {})
    assert "0.90, no version moves it" in page
    assert "0.90 → 0.70</span><br>with deaf" in page
    assert "0.90 → 0.10</span><br>with white<br><strong>decision changes</strong>" in page
    assert "a <mark>deaf</mark> &lt;b&gt; man" in page  # the fair model's, as it stands
    assert (
        "<th class='text'>its worst version (fair model, read as they stand)</th>" in page
    )  # of every line: said once
    assert "Of each model: the probability of its class" in page
    moves = line | {"moves_by": 0.5, "worst_version": "a blind <b> man"}
    page = render_texts(FINDINGS, [line, moves], {})
    assert "<th class='text'>its worst version</th>" in page
    assert "fair model, read as they stand: </span>a <mark>deaf" in page
    assert "fair model: </span>a <mark>blind" in page
    assert "read as they stand" not in render_texts(FINDINGS, WORST, {})
    hidden = {name: value for name, value in line.items() if name != "text" and not name.endswith("worst_version")}
    page = render_texts(FINDINGS, [hidden], {"show_people": "id"})
    assert "row 7" in page
    assert "with deaf" in page
    assert "man" not in page
    page = render_texts(FINDINGS, [], {"show_people": "none"})
    assert "Single texts are not shown" in page


def test_a_word_that_the_text_has_already_is_marked_and_long_texts_are_cut():
    line = WORST[0] | {"text": "straight men, gay men", "worst_version": "gay men, gay men"}
    page = render_texts(FINDINGS, [line], {})
    assert "<mark>straight</mark> men, gay men" in page
    assert "<mark>gay</mark> men, gay men" in page
    many = " ".join(f"w{i}" for i in range(100))
    page = render_texts(
        FINDINGS, [WORST[0] | {"text": f"{many} gay {many}", "worst_version": f"{many} old {many}"}], {}
    )
    assert "… w71 " in page
    assert "<mark>old</mark> w0" in page
    assert "w40" not in page


def test_errors_by_class():
    line = {"class": "<dull>", "n": 4, "false_negative": 0.25, "false_negative_interval": [0.1, 0.5]}
    line |= {"false_positive": None, "false_positive_interval": None}
    model = {"balanced_accuracy": 0.5, "auc": 0.7, "classes": [line]}
    page = render_texts(FINDINGS | {"models": {"plain": model, "fair": model}}, [], {})
    assert "<td data-is='class'>&lt;dull&gt;</td><td data-is='texts'>4</td>" in page
    assert "0.25 <span class='note'>(0.10 to 0.50)</span>" in page


def test_how_many_rows_repeat_another_is_said():
    assert "counts once" not in render_texts(FINDINGS, WORST, {})
    models = {name: MODEL | {"copies": 1200} for name in ("plain", "fair")}
    page = render_texts(FINDINGS | {"models": models}, WORST, {})
    assert "Each text counts once here and for FPED and FNED: 1,200 held-out rows repeat another." in page
    one = MODEL | {"copies": 1, "terms": [], "groups": {"sex": []}, "classes": []}
    page = render_texts(FINDINGS | {"models": {"plain": one}}, WORST, {})
    assert "Each text counts once in each group: 1 held-out row repeats another." in page


def test_scores_whose_names_do_not_say_it_are_explained_and_the_fair_model_is_named_beside_others():
    page = render_texts(FINDINGS, [], {})
    assert "FPED, FNED: how far" in page  # of one model it is undefined
    assert "CTF score" not in page
    worst = {"statement": "No version moves it."}
    named = {
        "certificate": {"refused": "none", "worst": worst | {"plain": {"statement": "Of the plain model: row 3."}}}
    }
    assert "<p>Of the fair model: No version moves it.</p>\n<p>Of the plain" in render_texts(FINDINGS | named, [], {})
    alone = {"certificate": {"refused": "none", "worst": worst}}
    assert "<p>No version moves it.</p>" in render_texts(FINDINGS | alone, [], {})
