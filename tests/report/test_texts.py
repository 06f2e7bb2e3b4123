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
    assert "0.33 (0.01 to 0.90)" in page
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
    assert "<td data-is='probability of &lt;yes&gt;'>0.90 → 0.20</td>" in page  # its label on a narrow screen
    assert "left out because they have no text: 2." in page
    assert "no label" not in page
    assert "No held-out text has a version" in render_texts(said, [], {})
