import pandas as pd

from evenhand.cli.text_findings import SHOWN, TERMS, show, show_line, shown

TERM = {"harmless": 3, "harmful": 0, "false_positive": 1 / 3, "false_negative": None}


def findings(**more):
    models = {name: {"auc": 0.9, "terms": [TERM | {"term": "gay"}] * 20, **more} for name in ("plain", "fair")}
    certificate = {"refused": "none was asked for", "worst": {"statement": "The worst is that of row 3."}}
    return {"models": models, "texts": {"held_out": 2000}, "certificate": certificate, "warning": "Look."}


def test_errors_by_term_are_shown_with_how_many_rows_repeat_another(capsys):
    show(findings(), terms=True)
    said = capsys.readouterr().out
    assert "On 2,000 held-out texts:" in said
    assert f"Errors by term, the {TERMS} of 20 with most texts (few texts: wide intervals, see --json):" in said
    assert "0.33" in said
    assert "No certificate: none was asked for\nThe worst is that of row 3.\nWarning: Look." in said
    show(findings(copies=1200), terms=True)
    assert "see --json; each text once, 1,200 rows repeat another):" in capsys.readouterr().out
    show(findings(copies=1200))
    assert "Errors by term" not in capsys.readouterr().out


def test_consistency_is_said_with_the_number_of_texts_it_is_about(capsys):
    """A model that treats both of two texts alike is not shown to be consistent on 2,000."""
    show(findings(consistency=1.0, compared=2))
    assert "Consistent, CTF: 2 texts have versions that the encoder tells apart\n" in capsys.readouterr().out
    show(findings(consistency=1.0, compared=1))
    assert "Consistent, CTF: 1 text has versions" in capsys.readouterr().out
    show(findings())
    assert "Consistent, CTF" not in capsys.readouterr().out


def test_without_labels_and_versions_there_is_no_table(capsys):
    certificate = {"refused": "only 0 held-out texts have versions; a certificate needs 25 or more"}
    show({"models": {"model": {"blind": 0}}, "texts": {"held_out": 1}, "certificate": certificate, "warning": ""})
    assert capsys.readouterr().out == f"\nNo certificate: {certificate['refused']}\n"


def test_the_worst_lines_are_those_that_move_once_each_and_none_where_nobody_is_shown():
    line = {"text": "a gay man", "worst_version": "an old man", "moves_by": 0.5, "row": 1}
    worst = pd.DataFrame([line, line | {"row": 2}, line | {"text": "still", "moves_by": 0.0}])
    assert [one["row"] for one in shown(worst, {})] == [1]
    assert shown(worst, {"show_people": "none"}) == []
    many = pd.DataFrame([line | {"text": str(i)} for i in range(2 * SHOWN)])
    assert len(shown(many, {})) == SHOWN


def test_a_line_shows_what_moves(capsys):
    line = {"row": 7, "passage": True, "probability": 0.25, "moves_by": 0.0, "text": "a gay man"}
    line |= {f"plain_{k}": v for k, v in {"moves_by": 0.5, "compared_with": 0.3, "probability_of_worst": 0.8}.items()}
    show_line(line | {"plain_worst_version": "an old man"})
    said = capsys.readouterr().out
    assert said == "  passage of row 7, plain model (of the whole text 0.25)\n  0.30: a gay man\n  0.80: an old man\n"
    hidden = {name: value for name, value in line.items() if name != "text"} | {"plain_words": "old"}
    show_line(hidden)
    assert capsys.readouterr().out == "  row 7 with 'old': 0.30 -> 0.80 (of the whole text 0.25), plain model\n"
