"""The numbers in the documents are those of the committed results, and the results say what the documents say."""

import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
sys.path.insert(0, str(ROOT / "tools"))
from fill_docs import filled  # noqa: E402


@pytest.mark.parametrize("name", ["reproduction.md", "frontier.md"])
def test_tables_are_those_of_the_results(name):
    text = (ROOT / "docs" / name).read_text()
    assert filled(text) == text, f"run python tools/fill_docs.py docs/{name}"


def test_a_changed_number_is_found(tmp_path):
    (tmp_path / "a.csv").write_text("rho,seed,x\n1,0,0.5\n1,1,0.25\n2,0,0.125\n")
    head = '<!-- results: a.csv mean=rho columns="rho,x" -->\n'
    right = filled(head + "wrong\n<!-- end -->", tmp_path)
    assert right == head + "\n| rho | x |\n| --- | --- |\n| 1 | 0.375 |\n| 2 | 0.125 |\n\n<!-- end -->"
    assert filled(right, tmp_path) == right


def result(name: str) -> pd.DataFrame:
    if not (RESULTS / name).exists():
        pytest.skip(f"no full run of {name} yet")
    return pd.read_csv(RESULTS / name)


def test_two_files_make_one_table(tmp_path):
    (tmp_path / "a.csv").write_text("method,x\nA,0.5\n")
    (tmp_path / "b.csv").write_text("method,x\nB,0.25\n")
    text = filled("<!-- results: a.csv+b.csv -->\n<!-- end -->", tmp_path)
    assert "| A | 0.500 |\n| B | 0.250 |\n" in text
    assert "no full run yet: c.csv" in filled("<!-- results: a.csv+c.csv -->\n<!-- end -->", tmp_path)


def test_ranking_halves_the_inconsistency_at_little_cost():
    table = result("ranking.csv")
    means = table[table["method"] == "SenSTIR"].groupby("rho").mean(numeric_only=True)
    fair = means[means["NDCG"] >= means["NDCG"].loc[0] - 0.02]
    assert (1 - fair["rank consistency"]).min() <= 0.5 * (1 - means["rank consistency"].loc[0])


def test_the_front_of_sensei_dominates_project_and_sensr_somewhere():
    table = result("frontier_adult.csv")
    sensei = table[table["method"] == "SenSeI"]
    for other in ("Project", "SenSR"):
        for _, point in table[table["method"] == other].iterrows():
            beats = (sensei["accuracy"] >= point["accuracy"]) & (sensei["unfairness"] <= point["unfairness"])
            if beats.any():
                break
        else:
            pytest.fail(f"SenSeI dominates no point of {other}")


def test_a_sweep_of_eight_takes_less_than_four_minutes_on_two_cores():
    table = result("frontier_adult.csv")
    sensei = table[table["method"] == "SenSeI"]
    assert len(sensei) == 8
    assert sensei["cpu_seconds"].iloc[0] / 2 < 240
