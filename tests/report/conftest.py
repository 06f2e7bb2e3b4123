import json

import numpy as np
import pytest

EVIL = "<script>window.hacked=1</script>"


def rate(value):
    return {"rate": value, "n": 100, "interval": [max(0, value - 0.1), min(1, value + 0.1)]}


def group(name, share, n=500):
    return {
        "group": name, "n": n, "small": n < 30, "selection": rate(0.3 + share), "tpr": rate(0.7), "fpr": rate(0.1),
        "fnr": rate(0.3), "observed": rate(0.3), "said": 0.31,
    }  # fmt: skip


def model(share, accuracy, r, sees=True):
    rng = np.random.default_rng(round(share * 1000))
    people = [
        {
            "row": str(i),
            "d_x": i / 10000,
            "d_y": r * (40 - i),
            "change": r * (40 - i) / 20,
            "label": ">50K",
            "score": 0.3,
            "score_other": 0.6,
            "decision": "<=50K",
            "decision_other": ">50K" if i % 2 else "<=50K",
            "changed": {"sex": ["Female", "Male"], EVIL: ["1", "2"]} if i % 3 else {"age": ["39", "41"]},
            "record": {"sex": "Female" if i % 2 else "Male", "age": str(20 + i), EVIL: "1", "job": f"work{i % 4}"},
        }
        for i in range(40)
    ]
    ratio = {"ratio": 0.7, "interval": [0.6, 0.82], "lowest": "Female", "highest": "Male", "verdict": "open"}
    around = {"accuracy": accuracy + 0.02, "balanced_accuracy": accuracy, "auc": 0.88, "log_loss": 0.4, "brier": 0.2}
    return {
        "n": 1000,
        **around,
        "calibration_error": 0.02,
        "mean_probability": 0.3,
        "observed": 0.31,
        "intervals": {name: [value - 0.01, value + 0.01] for name, value in around.items()},
        "calibration": [{"said": 0.1 * k, "happened": 0.1 * k, "n": 100, "interval": [0, 1]} for k in range(10)],
        "threshold": 0.3,
        "changed": {
            name: {
                "share": share * f * sees,
                "interval": [share * f * 0.8, share * f * 1.2 + 0.001],
                "mean_change": 0.01,
                "max_change": 0.3,
                "versions": 4,
                "n": 1000,
                "tried": f"all 2 values of {name}",
                "seen": sees,
            }
            for name, f in (("sex", 0.6), (EVIL, 0.5), (f"sex or {EVIL}", 1.0))
        },
        "groups": {
            a: {"rms": 0.1, "max": 0.2, "per_class": {}, "undefined": [], "four_fifths": ratio,
                "rates": [group("Female", 0), group("Male", share), group("Other", 0, 7)]}
            for a in ("sex", EVIL)
        },
        "audit": {
            "r_low": r,
            "lower": r / 2,
            "strangers": 4.0,
            "relative": r / 4,
            "eps": 0.01,
            "n": 400,
            "confidence": 0.95,
            "statement": "",
            "quantiles": np.sort(rng.exponential(r, 101)).tolist(),
            "people": people,
        },
        "history": {
            "step": [10.0, 20.0, 30.0],
            "loss": [0.7, 0.5, 0.45],
            "d_y": [0.3, 0.1, 0.05],
            "lam": [1.0, 0.5, 0.2],
        },
        "people": people if sees else [],
        "sees": ["sex"] if sees else [],
    }  # fmt: skip


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """The files of a run, made by hand, with a column that would like to be a script."""
    folder = tmp_path_factory.mktemp("run")
    columns = [("sex", "binary"), (EVIL, "category"), ("age", "number"), ("job", "category"), ("born", "date")]
    metrics = {
        "models": {
            "plain": model(0.13, 0.83, 0.3),
            "boosted_blind": model(0.0, 0.83, 0.2, sees=False),
            "project": model(0.0, 0.81, 0.1, sees=False),
            "fair": model(0.0, 0.8, 0.002, sees=False),
        },
        "reference": {"name": "boosted_blind", "accuracy": 0.83, "each": {}},
        "comparisons": {
            name: {"difference": d, "interval": [d - 0.01, d + 0.01]}
            for name, d in (("plain", -0.03), ("boosted_blind", -0.03), ("project", -0.005))
        },
        "example": {
            "row": "7",
            "d_x": 0.004,
            "changed": {"age": ["39", "41"]},
            "truth": ">50K",
            "said": {
                name: {
                    "label": ">50K",
                    "score": 0.6,
                    "score_other": other,
                    "decision": ">50K",
                    "decision_other": then,
                    "changed": {},
                }
                for name, other, then in (("boosted_blind", 0.2, "<=50K"), ("fair", 0.59, ">50K"))
            },
        },
        "notes": ["a note of the table"],
        "task": "classification",
        "positive": ">50K",
        "free_share": 0.4,
        "rows": {"train": 6000, "tuning": 500, "validation": 1500, "held_out": 2000},
        "held_out_inside": 1990,
        "left_out": {"no value in the target 'income'": 3},
        "columns": [
            {"name": n, "kind": k, "note": "a note" if k == "date" else "", "personal": False} for n, k in columns
        ],
        "schema": {
            "target": "income",
            "sensitive": ["sex", EVIL],
            "labels": ["<=50K", ">50K"],
            "columns": [],
            "see_sensitive": False,
        },
        "directions": [
            {"name": "sex", "kind": "column", "coefficients": []},
            {
                "name": "sex",
                "kind": "proxy",
                "coefficients": [{"feature": f"job = {i}", "weight": 1 / (1 + i) * (-1) ** i} for i in range(8)],
            },
        ],
        "proxies": [{"name": "sex", "explained": 0.25, "surely": True}],
        "questions": ["sex", EVIL, f"sex or {EVIL}"],
        "settings": {
            "eps": 0.1,
            "hidden": [100],
            "steps": 800,
            "seed": 0,
            "max_accuracy_loss": 0.03,
            "show_people": "all",
            "threshold": None,
        },
        "chosen": {"rho": 5.0, "why": "rho = 5 is the least unfair of the settings tried.", "within": True},
    }
    metrics["models"]["fair"]["thresholds"] = [
        {"threshold": t / 10, "selected": 1 - t / 10, "balanced_accuracy": 0.8, "accuracy": 0.8, "false_positives": 0.1,
         "false_negatives": 0.2, "by_group": {"sex": {"Female": 0.3, "Male": 0.4}}}
        for t in range(1, 10)
    ]  # fmt: skip
    certificate = {
        "confidence": 0.95, "upper": 0.0123, "lower": 0.0011, "r_low": 0.002, "r_high": 0.0101, "eps": 0.01, "n": 500,
        "seconds": 31.0, "distance": "mean squared logits", "statement": "With 95% confidence ...",
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
