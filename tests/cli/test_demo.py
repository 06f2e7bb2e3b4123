"""evenhand demo: the table of the paper and a folder; few people and steps, and no search here."""

import json
from dataclasses import replace

from evenhand.workflow import demo, judging, stages

from .conftest import QuickAudit


def test_demo_writes_the_table_and_the_folder(tmp_path, invoke, monkeypatch):
    adult = demo.adult

    def some(seed):
        return tuple(type(part)(*(column[:n] for column in part)) for part, n in zip(adult(seed), (1200, 400)))

    monkeypatch.setattr(demo, "adult", some)
    monkeypatch.setattr(demo, "SETTINGS", replace(demo.SETTINGS, trees=5, batch_size=100))
    monkeypatch.setattr(judging, "search", lambda model, frame, task, settings: QuickAudit(frame))
    chosen = {"table": [], "chosen": {"rho": 15.0, "kind": "network", "why": "rho = 15 was given."}, "other": None}
    monkeypatch.setattr(stages, "choose_rho", lambda *args: chosen)
    result = invoke("demo", "--out", tmp_path / "demo", "--steps", "5", "--no-certificate")
    assert result.exit_code == 0, result.stderr
    for name in ("Plain network", "Boosted trees, blind", "Project", "SenSR", "SenSeI", "S-Con", "GR-Con", "relative"):
        assert name in result.stdout
    metrics = json.loads((tmp_path / "demo" / "metrics.json").read_text())
    assert metrics["rows"]["held_out"] == 400
    assert metrics["models"]["project"]["changed"]["sex or race"]["share"] == 0  # the columns are projected out
    assert (tmp_path / "demo" / "report.html").stat().st_size < 6_000_000
