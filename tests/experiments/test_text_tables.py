"""The shared parts of the text experiments, on vectors made here: no encoder, no data."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.evaluation import ctf_std
from evenhand.variations import Variations

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module("text_tables")


def biased_task(tables, n=300, d=12):
    """A feature that tells the label, and three directions in which versions differ and which lean to the label too."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * n, d))
    y = (x[:, 0] > 0).astype(int)
    x[:, 1:4] += 1.5 * (2 * y[:, None] - 1)
    values = np.repeat(x[:, None], 6, axis=1)
    values[:, 1:, 1:4] = rng.normal(scale=2, size=(2 * n, 5, 3))
    train, test = np.arange(n), np.arange(n, 2 * n)
    all_versions = Variations(values, np.arange(2 * n))
    return tables.task(x[train], y[train], all_versions.select(train), x[test], y[test], all_versions.select(test), k=3)


def test_every_method_trains_and_the_fair_ones_are_fairer(tables):
    split = biased_task(tables)
    training = {"hidden": (30,), "steps": 80, "batch_size": 64, "lr": 5e-3}
    settings = {
        "Baseline": {},
        "Project": {},
        "SenSeI": {"rho": 5.0, "step": 1.0, "steps": 5},
        "SenSR": {"step": 0.5, "steps": 5},
        "CLP": {"rho": 5.0},
    }
    ctf = {}
    for method, setting in settings.items():
        model = tables.fit(method, split, setting, training, seed=0)
        assert model.score(split.x_test, split.y_test) > 0.7, method
        ctf[method] = ctf_std(split.versions.map(lambda x, model=model: model.predict_proba(x)[:, 1]))
    assert max(ctf, key=ctf.get) == "Baseline"
    assert ctf["SenSeI"] < 0.5 * ctf["Baseline"]
    with pytest.raises(ValueError, match="unknown method"):
        tables.fit("Other", split, {}, training, seed=0)


def test_with_eps_the_search_also_leaves_the_directions(tables):
    split = biased_task(tables, n=100)
    training = {"hidden": (10,), "steps": 30, "batch_size": 50, "lr": 5e-3}
    inside, outside = (
        tables.fit("SenSeI", split, {"rho": 5.0, "eps": eps}, training, seed=0).predict_proba(split.x_test)
        for eps in (0.0, 1e-6)
    )
    assert np.abs(inside - outside).max() > 1e-3


def test_a_constant_feature_stays_finite(tables):
    x = np.random.default_rng(0).normal(size=(40, 5))
    x[:, 2] = 0.25
    pairs = Variations(np.stack([x, x[::-1]], axis=1), np.arange(40))
    split = tables.task(x, np.arange(40) % 2, pairs, x, np.arange(40) % 2, pairs, k=2)
    assert np.isfinite(split.x).all()
    assert np.isfinite(split.versions.values).all()


def test_runs_are_resumed(tables, tmp_path):
    path = tmp_path / "runs.csv"
    made = []

    def make(value):
        made.append(value)
        return {"BA": value}

    runs = tables.Runs(path)
    runs.run(0, "Baseline", {}, lambda: make(0.5))
    runs.run(0, "SenSeI", {"rho": 5.0}, lambda: make(0.6))
    again = tables.Runs(path)  # a second start reads what is there
    again.run(0, "Baseline", {}, lambda: make(0.9))
    again.run(0, "SenSeI", {"rho": 5.0}, lambda: make(0.9))
    again.run(0, "SenSeI", {"rho": 2.0}, lambda: make(0.7))
    again.run(1, "Baseline", {}, lambda: make(0.8))
    assert made == [0.5, 0.6, 0.7, 0.8]
    assert pd.read_csv(path)["BA"].tolist() == made
    assert not list(tmp_path.glob("*.partial"))


def test_settings_are_compared_by_their_mean_over_the_validation_splits(tables, tmp_path):
    split = biased_task(tables, n=60)
    training = {"hidden": (5,), "steps": 5, "batch_size": 20, "lr": 1e-3}
    runs = tables.Runs(tmp_path / "tuning.csv")
    seen = iter([0.25, 0.75])
    tables.compare(
        [("Baseline", {})], [(split, "a"), (split, "b")], lambda model, t, groups: {"BA": next(seen)}, training, runs
    )
    assert runs.frame["BA"].tolist() == [0.5]
    assert runs.has(tables.TUNED, "Baseline", {})
    assert not runs.has(tables.TUNED, "SenSeI", {"rho": 1.0})


def test_random_groups_keep_the_size_and_the_labels(tables):
    toxicity, bios = importlib.import_module("table1_toxicity"), importlib.import_module("table2_bios")
    rng = np.random.RandomState(0)
    y, member = rng.randint(2, size=200), rng.rand(200) < 0.2
    drawn = toxicity.alike({"a": member}, y, rng)["a"]
    for label in (0, 1):
        assert drawn[y == label].sum() == member[y == label].sum()
    assert (drawn != member).any()
    gender = np.where(member, "female", "male")
    dealt = bios.shuffled(gender, y, rng)
    for label in (0, 1):
        assert sorted(dealt[y == label]) == sorted(gender[y == label])
    assert (dealt != gender).any()


def test_the_table_shows_mean_deviation_and_the_published_row(tables):
    runs = pd.DataFrame(
        {
            "seed": [0, 1, 0, 1, 2],
            "method": ["SenSeI", "SenSeI", "Project", "Project", "SenSeI"],
            "setting": ["rho=5", "rho=5", "", "", "rho=5"],
            "BA": [0.7, 0.9, 0.6, 0.6, 0.1],  # the third split is not complete and does not count
        }
    )
    result = tables.table(runs, ["BA"], {"SenSeI": (0.791,)})
    assert result["runs"].tolist() == [2, 2]
    assert result["BA"].tolist() == [0.8, 0.6]
    assert result["BA sd"][0] == pytest.approx(np.std([0.7, 0.9], ddof=1), abs=1e-4)
    text = tables.markdown(result, ["BA"])
    assert "| SenSeI | 2 | 0.800 ± 0.141 [0.791] |" in text
    assert "| Project | 2 | 0.600 ± 0.000 |" in text


def test_the_published_rows_are_those_of_the_paper(tables):
    one, two = importlib.import_module("table1_toxicity"), importlib.import_module("table2_bios")
    assert one.PUBLISHED["SenSeI"] == (0.791, 0.029, 0.773, 0.035, 0.052)
    assert two.PUBLISHED["Baseline"] == (0.842, 0.028, 0.942, 0.120, 0.080)
    assert sys.modules["text_tables"] is tables


def test_the_groups_of_the_stand_in_are_tokens(tables):
    from evenhand.counterfactuals import identity_tokens

    groups = importlib.import_module("table1_toxicity").GROUPS
    named = [token for tokens in groups.values() for token in tokens]
    assert set(named) <= set(identity_tokens())
    assert len(named) == len(set(named))


def test_two_processes_fill_one_file(tables, tmp_path):
    """Each sees what the other has written meanwhile, and neither loses it."""
    first, second = (tables.Runs(tmp_path / "runs.csv") for _ in range(2))
    made = []

    def make(name):
        return lambda: made.append(name) or {"BA": 0.5}

    first.run(0, "A", {}, make("first"))
    second.run(9, "A", {}, make("second"))
    second.run(0, "A", {}, make("again"))
    assert made == ["first", "second"]
    assert sorted(tables.Runs(tmp_path / "runs.csv").frame["seed"]) == [0, 9]
