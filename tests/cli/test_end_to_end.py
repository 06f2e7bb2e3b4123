"""train, audit, certify, predict and report for real: nothing is replaced, only the table and the network are tiny."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli import proving
from evenhand.workflow import judging

from .conftest import QuickAudit

ROOT = Path(__file__).resolve().parents[2]
TINY = ["--steps", "60", "--hidden", "3", "--audit-rows", "8", "--certify-rows", "30", "--trees", "10"]
TINY += ["--see-sensitive"]


def applicants(n, seed=0):
    rng = np.random.default_rng(seed)
    sex, pay = rng.choice(["female", "male"], n), rng.normal(30, 8, n).round(2)
    yes = pay + 12 * (sex == "male") + rng.normal(0, 2, n) > 36
    return pd.DataFrame({"pay": pay, "sex": sex, "approved": np.where(yes, "yes", "no")})


@pytest.fixture(scope="module")
def run(invoke, tmp_path_factory):
    """A run with plain weight on fairness (rho 0), so that there is something to refute."""
    folder = tmp_path_factory.mktemp("end")
    applicants(400).to_csv(folder / "people.csv", index=False)
    applicants(120, seed=1).to_csv(folder / "new.csv", index=False)
    args = ["--target", "approved", "--sensitive", "sex", "--rho", "0", "--out", folder / "run", *TINY]
    result = invoke("train", folder / "people.csv", *args)
    assert result.exit_code == 0, result.stderr
    return folder, result


def test_train_proves_what_it_prints(run):
    folder, result = run
    certificate = json.loads((folder / "run" / "certificate.json").read_text())
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    assert 0 <= certificate["lower"] <= certificate["upper"]
    assert certificate["r_low"] <= certificate["r_high"]
    assert certificate["statement"] in result.stdout
    assert metrics["models"]["plain"]["changed"]["sex"]["share"] > 0.2  # sex decides in these data
    assert metrics["models"]["project"]["changed"]["sex"]["share"] == 0
    assert metrics["models"]["boosted"]["changed"]["sex"]["share"] > 0.1
    assert metrics["models"]["boosted_blind"]["changed"]["sex"]["share"] == 0
    assert metrics["models"]["plain"]["audit"]["r_low"] > 10 * metrics["models"]["project"]["audit"]["r_low"]


def test_audit_lies_below_the_certificate(run, invoke):
    folder, _ = run
    found = json.loads(invoke("audit", folder / "run", folder / "new.csv", "--rows", "12", "--json").stdout)
    assert found["lower"] <= found["r_low"]
    assert found["questions"]["sex"]["share"] > 0.2
    assert all("sex: " in line["changed"] for line in found["people"])


def test_exit_codes_of_certify_are_the_truth(run, invoke, monkeypatch):
    """A real proof, asked at three delta: above the upper bound, below the lower one, between them."""
    folder, _ = run
    proofs = []

    def once(*args, **kwargs):  # the proof does not depend on delta: made once, for real
        proofs.append(proofs[0] if proofs else bound(*args, **kwargs))
        return proofs[0]

    bound = proving.prove
    monkeypatch.setattr(proving, "prove", once)
    args = ["certify", folder / "run", folder / "new.csv", "--eps", "0.01", "--json"]
    first = invoke(*args, "--delta", "1000")
    assert first.exit_code == 0, first.stderr
    found = json.loads(first.stdout)
    assert found["verdict"] == "certified"
    lower, upper = found["lower"], found["upper"]
    assert 0 < lower < upper < 1000
    for delta, code, word in ((lower / 2, 1, "refuted"), ((lower + upper) / 2, 3, "undecided")):
        again = invoke(*args, "--delta", delta)
        assert again.exit_code == code
        assert json.loads(again.stdout)["verdict"] == word
    assert len(proofs) == 3


def test_predict_and_report(run, invoke):
    folder, _ = run
    table = pd.read_csv(io.StringIO(invoke("predict", folder / "run", folder / "new.csv").stdout))
    right = table["prediction"].to_numpy() == pd.read_csv(folder / "new.csv")["approved"].to_numpy()
    assert right.mean() > 0.8
    (folder / "run" / "report.html").unlink()
    assert invoke("report", folder / "run").exit_code == 0
    page = (folder / "run" / "report.html").read_text()
    certificate = json.loads((folder / "run" / "certificate.json").read_text())
    assert f"{certificate['upper']:.3g}" in page


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_real_ctrl_c_and_the_same_command_again(tmp_path, invoke, monkeypatch):
    """SIGINT to a real process in the middle of its work: code 130, no traceback, and the finished stages are kept. The
    audits, which come after, are not searched here."""
    applicants(300).to_csv(tmp_path / "people.csv", index=False)
    arguments = ["train", str(tmp_path / "people.csv"), "--target", "approved", "--sensitive", "sex", "--rho", "1"]
    arguments += ["--no-certificate", "--out", str(tmp_path / "run"), *TINY]
    command = [sys.executable, "-m", "evenhand", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    plain = tmp_path / "run" / "stages" / "plain.evenhand"

    def listen() -> None:  # where the tests run in the background, a shell has told all children to ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path, preexec_fn=listen
    ) as process:
        deadline = time.monotonic() + 900  # a busy machine
        while not plain.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 130, said
    assert "What was finished is kept: the same command goes on from there" in said
    assert "Traceback" not in said
    assert not (tmp_path / "run" / "report.html").exists()
    made = plain.stat().st_mtime_ns
    monkeypatch.setattr(judging, "search", lambda model, frame, task, settings: QuickAudit(frame))
    again = invoke(*arguments)
    assert again.exit_code == 0, again.stderr
    assert "going on with the run" in again.stderr
    assert plain.stat().st_mtime_ns == made
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_inside_a_fit_it_goes_on_to_the_same_model(tmp_path, invoke, monkeypatch):
    """SIGKILL to a real process while the fair model is being trained: the same command ends with the same bytes as one
    that was left alone. The audits, which come after, are not searched here."""
    applicants(300).to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.setattr(judging, "search", lambda model, frame, task, settings: QuickAudit(frame))

    def command(out):
        options = ["--steps", "400", "--rho", "1", "--hidden", "3", "--audit-rows", "2", "--trees", "1"]
        options += ["--no-certificate", "--see-sensitive", "--out", str(tmp_path / out)]
        return ["train", str(tmp_path / "people.csv"), "--target", "approved", "--sensitive", "sex", *options]

    stages = tmp_path / "run" / "stages"
    started = [sys.executable, "-m", "evenhand", *command("run")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(started, stderr=subprocess.DEVNULL, env=environment, cwd=tmp_path) as process:
        deadline = time.monotonic() + 900  # a busy machine
        while not (stages / "fair.checkpoint").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not (stages / "fair.evenhand").exists()
    with zipfile.ZipFile(stages / "fair.checkpoint") as checkpoint:
        assert 0 < _step(json.loads(checkpoint.read("tree.json"))) < 400  # in the middle of the fit
    for out in ("run", "alone"):
        done = invoke(*command(out))
        assert done.exit_code == 0, done.stderr
        assert ("going on with the run" in done.stderr) == (out == "run")
    assert not list(stages.glob("*.checkpoint*"))
    for name in ("plain", "project", "fair"):
        made, wanted = ((tmp_path / out / "stages" / f"{name}.evenhand").read_bytes() for out in ("run", "alone"))
        assert made == wanted
    said = [json.loads((tmp_path / out / "metrics.json").read_text()) for out in ("run", "alone")]
    scores = [{name: (m["log_loss"], m["changed"]) for name, m in one["models"].items()} for one in said]
    assert scores[0] == scores[1]


def _step(tree):
    """The number behind "step" in the tree of a checkpoint."""
    pairs = {key: value for key, value in tree["dict"] if isinstance(key, str)}
    return pairs["step"] if "step" in pairs else _step(pairs["state"])


@pytest.fixture(scope="module")
def trees(invoke, tmp_path_factory):
    """Fair trees and a fair network side by side; the network does not learn in its two steps, so trees are chosen."""
    pytest.importorskip("lightgbm", reason="boosted trees are fitted by LightGBM")
    folder = tmp_path_factory.mktemp("trees")
    applicants(500).to_csv(folder / "people.csv", index=False)
    applicants(120, seed=1).to_csv(folder / "new.csv", index=False)
    args = ["--target", "approved", "--sensitive", "sex", "--see-sensitive", "--out", folder / "run"]
    args += ["--model", "both", "--rho", "0", "--steps", "2", "--hidden", "3", "--trees", "6"]
    result = invoke("train", folder / "people.csv", *args, "--audit-rows", "8", "--certify-rows", "30")
    assert result.exit_code == 0, result.stderr
    return folder, result


def test_trees_and_network_side_by_side(trees):
    folder, result = trees
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    assert metrics["chosen"]["kind"] == "trees"
    assert {"fair", "fair_network", "boosted_blind"} <= set(metrics["models"])
    assert metrics["models"]["fair"]["balanced_accuracy"] > metrics["models"]["fair_network"]["balanced_accuracy"]
    table = pd.read_csv(folder / "run" / "frontier.csv")
    assert table["kind"].tolist() == ["network", "trees"]
    page = (folder / "run" / "report.html").read_text()
    assert "Fair network (SenSeI)" in page
    assert "boosted trees whose splits are ramps" in page
    certificate = json.loads((folder / "run" / "certificate.json").read_text())
    assert certificate["r_low"] <= certificate["r_high"]


def test_commands_on_a_tree_model(trees, invoke):
    folder, _ = trees
    model, new = folder / "run", folder / "new.csv"
    said = pd.read_csv(io.StringIO(invoke("predict", model, new).stdout))
    assert (said["prediction"] == pd.read_csv(new)["approved"]).mean() > 0.8
    audited = json.loads(invoke("audit", model, new, "--rows", "12", "--json").stdout)
    assert audited["questions"]["sex"]["share"] > 0.1  # rho = 0: sex decides in these data
    done = invoke("certify", model, new, "--delta", "1000", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["r_low"] >= 0
    assert invoke("report", model).exit_code == 0
    assert invoke("export", model / "model.evenhand", folder / "m.onnx").exit_code == 0
    theirs = pd.read_csv(io.StringIO(invoke("predict", folder / "m.onnx", new).stdout))
    assert (theirs["prediction"] == said["prediction"]).all()
    assert theirs["probability of yes"].to_numpy() == pytest.approx(said["probability of yes"].to_numpy(), abs=1e-5)
