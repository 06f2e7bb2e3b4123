import json

import numpy as np
import pytest

EVIL = "<script>window.hacked=1</script>"


def model(share, accuracy, r, history=False):
    rng = np.random.default_rng(round(share * 1000))
    rates = [
        {"class": k, "group": g, "n": 100, "rate": 0.7 + 0.1 * k + share * (g == "Male"), "interval": [0.6, 0.95]}
        for k in (0, 1)
        for g in ("Female", "Male")
    ]
    people = [
        {
            "row": str(i),
            "d_x": i / 100,
            "d_y": r * (40 - i),
            "prediction": "<=50K",
            "prediction_worst": ">50K" if i % 2 else "<=50K",
            "changed": {"sex": ["Female", "Male"], EVIL: ["1", "2"]} if i % 3 else {"age": ["39", "41"]},
            "record": {"sex": "Female" if i % 2 else "Male", "age": str(20 + i), EVIL: "1", "job": f"work{i % 4}"},
        }
        for i in range(40)
    ]
    return {
        "n": 1000,
        "accuracy": accuracy + 0.02,
        "balanced_accuracy": accuracy,
        "log_loss": 0.4,
        "changed": {
            name: {
                "share": share * f,
                "interval": [share * f * 0.8, share * f * 1.2 + 0.001],
                "mean_probability_change": 0.01,
                "max_probability_change": 0.3,
                "versions": 4,
            }
            for name, f in (("sex", 0.6), (EVIL, 0.5), (f"sex or {EVIL}", 1.0))
        },
        "gaps": {a: {"rms": 0.1, "max": 0.2, "per_class": {}, "rates": rates, "undefined": []} for a in ("sex", EVIL)},
        "audit": {
            "r_low": r,
            "lower": r / 2,
            "eps": 0.01,
            "n": 400,
            "confidence": 0.95,
            "statement": "",
            "mean_d_y": r,
            "quantiles": np.sort(rng.exponential(r, 101)).tolist(),
            "people": people,
        },
        "history": {
            "step": [10.0, 20.0, 30.0],
            "loss": [0.7, 0.5, 0.45],
            "d_y": [0.3, 0.1, 0.05],
            "lam": [1.0, 0.5, 0.2],
        },
        "rho": 5.0,
        "people": [
            {**p, "change": p["d_y"] / 20, "label": ">50K", "probability": 0.3, "probability_worst": 0.6}
            for p in people
        ],
    }


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """The files of a run, made by hand, with a column that would like to be a script."""
    folder = tmp_path_factory.mktemp("run")
    columns = [("sex", "binary"), (EVIL, "category"), ("age", "number"), ("job", "category"), ("born", "date")]
    metrics = {
        "models": {"plain": model(0.13, 0.83, 0.3), "project": model(0.0, 0.81, 0.1), "fair": model(0.004, 0.8, 0.002)},
        "rows": {"train": 6000, "tuning": 500, "validation": 1500, "held_out": 2000},
        "held_out_inside": 1990,
        "left_out": {"no value in the target 'income'": 3},
        "columns": [{"name": n, "kind": k, "note": "a note" if k == "date" else ""} for n, k in columns],
        "schema": {"target": "income", "sensitive": ["sex", EVIL], "labels": ["<=50K", ">50K"], "columns": []},
        "directions": [
            {"name": "sex", "kind": "column", "coefficients": []},
            {
                "name": "sex",
                "kind": "proxy",
                "coefficients": [{"feature": f"job = {i}", "weight": 1 / (1 + i) * (-1) ** i} for i in range(8)],
            },
        ],
        "proxies": ["sex"],
        "questions": ["sex", EVIL, f"sex or {EVIL}"],
        "settings": {"eps": 0.1, "hidden": [100], "steps": 800, "seed": 0},
        "chosen": {"rho": 5.0, "why": "rho=5 is the least unfair of the settings tried."},
    }
    certificate = {
        "confidence": 0.95, "upper": 0.0123, "lower": 0.0011, "r_low": 0.002, "r_high": 0.0101, "eps": 0.01, "n": 500,
        "seconds": 31.0, "statement": "With 95% confidence ...",
    }  # fmt: skip
    made_by = {
        "command": f"evenhand train '{EVIL}.csv'",
        "data": f"{EVIL}.csv",
        "rows": 10000,
        "versions": {"evenhand": "0"},
    }
    for name, value in (("metrics", metrics), ("certificate", certificate), ("run", made_by)):
        (folder / f"{name}.json").write_text(json.dumps(value))
    rows = ["rho,accuracy,unfairness,front", "1,0.825,0.1,True", "5,0.80,0.002,True", "40,0.77,0.0004,True"]
    (folder / "frontier.csv").write_text("\n".join(rows) + "\n")
    return folder
