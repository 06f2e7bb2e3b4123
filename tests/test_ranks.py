"""Two real processes (gloo) against one on the joint batch. This file is also the program that each process runs."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from evenhand import FairMetric, FairRegularizer, SenSeIClassifier, ranks
from evenhand.fair_metrics import per_token
from evenhand.objectives import Batch, SenSeI
from evenhand.search import GradientSearch
from evenhand.training.loop import train

X = torch.rand(61, 5, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] + X[:, 1] > 1).long()
METRIC = torch.eye(5)[:, :2]
SHARDS = {"even": (0, 6, 12), "uneven": (0, 9, 12), "one empty": (0, 12, 12)}  # rows start[rank]..start[rank + 1]


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))


def regularizer(lam: float = 1.0) -> FairRegularizer:
    own = torch.Generator().manual_seed(1)
    return FairRegularizer(FairMetric(METRIC), eps=0.05, bounds=(0.0, 1.0), lam=lam, generator=own)


def gradients(shard: str) -> dict[str, list]:
    """Three calls of the regularizer as in a user's own loop under DDP: lam after each, gradient of the last."""
    model, fair, start = net(), regularizer(), SHARDS[shard]
    wrapped = DistributedDataParallel(model) if ranks.world() > 1 else model
    rows = slice(start[ranks.rank()], start[ranks.rank() + 1]) if ranks.world() > 1 else slice(0, 12)
    lams, optimizer = [], torch.optim.SGD(model.parameters(), lr=0.0)
    for _ in range(3):
        optimizer.step()  # lam follows the steps of the model
        model.zero_grad()
        (0 * wrapped(X[rows]).sum() + fair(wrapped, X[rows])).backward()
        lams.append(fair.lam.item())
    return {"lam": lams, "gradient": [p.grad.flatten().tolist() for p in model.parameters()]}


def what_costs_nothing() -> dict[str, list]:
    """One rank's people are far inside the box, those of the other in its corners: there its search has to pay."""
    model, oblique = net().double(), FairMetric(torch.tensor([[1.0, -1, 0.5, 0, 0]]).double().T)
    search = GradientSearch(subspace_step=0.02, noise=0.01)
    fair = FairRegularizer(oblique, 0.05, (0.0, 1.0), search=search, generator=torch.Generator().manual_seed(1))
    objective = SenSeI(fair, 3.0, every=1, free=0.5)
    x = torch.cat([0.4 + 0.2 * X[:6], X[6:12].round()]).double()
    rows = slice(6 * ranks.rank(), 6 * ranks.rank() + 6) if ranks.world() > 1 else slice(0, 12)
    wrapped = DistributedDataParallel(model) if ranks.world() > 1 else model
    (0 * wrapped(x[rows]).sum() + objective(model, Batch(x[rows], Y[:12][rows]))).backward()
    return {"gradient": [p.grad.flatten().tolist() for p in model.parameters()]}


class Tokens(nn.Module):
    """Sequences of vectors, padded: the mean of those that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.head = net()

    def forward(self, x, attention_mask):
        here = attention_mask[..., None].to(x)
        return self.head((x * here).sum(1) / here.sum(1))


def tokens() -> dict[str, list]:
    """One rank's texts are shorter than the other's, and padded by themselves."""
    model, own = Tokens().double(), torch.Generator().manual_seed(1)
    fair = FairRegularizer(per_token(FairMetric(METRIC.double())), 0.05, vary="x", generator=own)
    x, lengths = X[:60].double().view(12, 5, 5), torch.tensor([5, 4, 5, 3, 5, 4, 2, 1, 3, 3, 2, 2])
    mask = (torch.arange(5) < lengths[:, None]).long()
    rows = slice(6 * ranks.rank(), 6 * ranks.rank() + 6) if ranks.world() > 1 else slice(0, 12)
    width = int(lengths[rows].max())
    wrapped = DistributedDataParallel(model) if ranks.world() > 1 else model
    batch = {"x": x[rows, :width], "attention_mask": mask[rows, :width]}
    (0 * wrapped(**batch).sum() + fair(wrapped, batch)).backward()
    drawn = torch.rand(2, generator=own).tolist()
    return {"gradient": [p.grad.flatten().tolist() for p in model.parameters()], "drawn": drawn}


def alone() -> dict[str, list]:
    """In eval mode one rank may look by itself: nobody waits for the other."""
    if ranks.rank() == 0:
        SenSeI(regularizer(), 3.0, free=0.5).eval()(net(), Batch(X[:8], Y[:8]))
    return {"came back": [ranks.rank()]}


def training(**more) -> dict[str, list]:
    """In float64: Adam would turn the rounding of float32 gradients that are nearly zero into whole steps."""
    model, objective = net().double(), SenSeI(regularizer(), rho=3.0).double()
    data = more.pop("data", (X.double(), Y))
    if len(data) == 2:
        more["validation"] = (X[:15].double(), Y[:15])
    settings = {"steps": 12, "batch_size": 13, "evaluate_every": 3, "generator": torch.Generator().manual_seed(2)}
    history = train(model, objective, *data, **(settings | more))
    weights = [p.flatten().tolist() for p in model.parameters()]
    return {"weights": weights, "lam": [objective.regularizer.lam.item()], "best": [history.best_step or 0]}


def streams() -> dict[str, list]:
    """Each rank has its own stream, of batches of 8 and of 3 rows; one process has both."""
    parts = [[(X[i : i + 8], Y[i : i + 8]) for i in (0, 8, 16)], [(X[i : i + 3], Y[i : i + 3]) for i in (30, 33, 36)]]
    if ranks.world() > 1:
        return training(data=(parts[ranks.rank()],))
    return training(data=([tuple(torch.cat(both) for both in zip(*batch)) for batch in zip(*parts)],))


def estimator() -> dict[str, list]:
    fitted = SenSeIClassifier(FairMetric(METRIC), hidden=(8,), rho=2.0, steps=10, batch_size=20, random_state=0)
    fitted.fit(X.numpy(), np.array(["no", "yes"])[Y.numpy()])
    return {"probability": fitted.predict_proba(X.numpy()).tolist(), "lam": [fitted.lam_]}


def streamed_estimator() -> dict[str, list]:
    """Each rank has its own stream; the label 'rare' and the largest value of a column stand in one of them only."""
    labels = np.array(["no", "yes"], dtype=object)[Y.numpy()]
    labels[40:44] = "rare"
    x = X.numpy().copy()
    x[50, 2] = 7.0
    parts = [[(x[i : i + 8], labels[i : i + 8].astype(str)) for i in rows] for rows in ((0, 8), (36, 44))]
    if ranks.world() > 1:
        given = parts[ranks.rank()]
    else:
        given = [tuple(np.concatenate(both) for both in zip(*batch)) for batch in zip(*parts)]
    fitted = SenSeIClassifier(FairMetric(METRIC), hidden=(8,), rho=2.0, steps=6, random_state=0).fit_stream(given)
    bounds = [float(fitted.bounds_.high[2])]
    return {"probability": fitted.predict_proba(X.numpy()).tolist(), "lam": [fitted.lam_], "bounds": bounds}


def stopped_and_resumed(folder: Path) -> dict[str, list]:
    keeping = {"checkpoint": folder / "run", "checkpoint_every": 2, "resume": True}

    def stop(step, steps, record):
        if step >= 6:
            raise InterruptedError

    for progress in (stop, False):
        try:
            result = training(progress=progress, **keeping)
        except InterruptedError:
            continue
    return result


def dying() -> dict[str, list]:
    """Rank 1 dies in the middle of training; the other must end with an error, not wait."""

    def die(step, steps, record):
        if ranks.rank() == 1:
            os._exit(0)

    began = time.monotonic()
    try:
        training(progress=die)
    except RuntimeError as error:
        return {"seconds": [time.monotonic() - began], "error": [str(error)[:200]]}
    return {"error": ["none"]}


def main(out: Path) -> None:
    torch.set_num_threads(1)
    results = {}
    with ranks.begin(timeout=60):
        for shard in SHARDS:
            results[shard] = gradients(shard)
        results |= {
            "costs nothing": what_costs_nothing(),
            "tokens": tokens(),
            "alone": alone(),
            "training": training(),
            "streams": streams(),
            "estimator": estimator(),
        }
        results["streamed"] = streamed_estimator()
        results["again"] = stopped_and_resumed(out)
        results["parts"] = {"rows": ranks.own_part(torch.arange(13)).tolist()}
        (out / f"{ranks.rank()}.json").write_text(json.dumps(results))
        results["dying"] = dying()
        (out / f"{ranks.rank()}.json").write_text(json.dumps(results))


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> list[dict]:
    """What each of two processes found."""
    out = tmp_path_factory.mktemp("ranks")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = os.environ | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    started = [
        subprocess.Popen(
            [sys.executable, __file__, str(out)],
            env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in started:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(2)]


def close(one: dict, other: dict, tolerance: float = 1e-6) -> bool:
    assert one.keys() == other.keys()
    return all(
        np.allclose(np.concatenate([np.ravel(part) for part in one[name]]),
                    np.concatenate([np.ravel(part) for part in other[name]]), atol=tolerance, rtol=tolerance)
        for name in one
    )  # fmt: skip


@pytest.mark.parametrize("shard", SHARDS)
def test_lam_is_the_same_to_the_bit_on_all_ranks(found, shard):
    assert found[0][shard]["lam"] == found[1][shard]["lam"]
    assert len(set(found[0][shard]["lam"])) == 3  # it did move


@pytest.mark.parametrize("shard", SHARDS)
def test_gradients_under_ddp_are_those_of_the_joint_batch(found, shard):
    alone = gradients(shard)
    assert any(abs(g) > 1e-3 for part in alone["gradient"] for g in part)
    for rank in found:
        assert close(rank[shard], alone)


def test_ranks_agree_whether_the_search_has_met_what_costs_nothing(found):
    """The people of one rank make it pay, so both search once more, as one process with the joint batch does."""
    alone = what_costs_nothing()
    assert any(abs(g) > 1e-3 for part in alone["gradient"] for g in part)
    for rank in found:
        assert close(rank["costs nothing"], alone)


def test_ranks_whose_texts_are_of_other_lengths_draw_the_noise_of_one_process(found):
    joint = tokens()
    assert any(abs(g) > 1e-3 for part in joint["gradient"] for g in part)
    for rank in found:
        assert close(rank["tokens"], joint)


def test_a_rank_looks_alone_in_eval_mode(found):
    assert [rank["alone"]["came back"] for rank in found] == [[0], [1]]


@pytest.mark.parametrize("what", ["training", "streams", "estimator", "streamed", "again"])
def test_ranks_end_with_the_same_bits(found, what):
    assert found[0][what] == found[1][what]


def test_training_over_two_ranks_is_training_on_the_joint_batch(found):
    assert close(found[0]["training"], training())


def test_streams_of_uneven_batches_are_one_joint_stream(found):
    assert close(found[0]["streams"], streams())


def test_estimators_fit_over_ranks_as_alone(found):
    assert close(found[0]["estimator"], estimator(), 1e-2)  # float32, see training()


def test_ranks_that_fit_their_own_streams_know_the_classes_and_ranges_of_all(found):
    alone = streamed_estimator()
    assert np.shape(alone["probability"]) == (61, 3)
    assert alone["bounds"] == [7.0]
    assert close(found[0]["streamed"], alone, 1e-2)


def test_a_stopped_run_over_ranks_resumes_to_the_same_bits(found):
    assert found[0]["again"] == found[0]["training"]


def test_sampled_rows_are_sharded_without_overlap(found):
    assert found[0]["parts"]["rows"] + found[1]["parts"]["rows"] == list(range(13))


def test_a_dead_rank_ends_the_run_with_an_error(found):
    assert found[0]["dying"]["error"] != ["none"]
    assert found[0]["dying"]["seconds"][0] < 60
    assert "dying" not in found[1]


def test_one_process_needs_no_torchrun(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with ranks.begin() as rank:
        assert (rank, ranks.world(), ranks.is_main()) == (0, 1, True)
    values = torch.rand(7)
    assert ranks.mean_of_all(values) == values.mean()
    assert ranks.gather([1.0, 2.0]) == [[1.0, 2.0]]


def test_fewer_rows_than_processes_are_refused(monkeypatch):
    monkeypatch.setattr(ranks, "world", lambda: 4)
    with pytest.raises(ValueError, match="batch_size 3 is less than the number of processes, 4"):
        train(net(), SenSeI(regularizer(), 1.0), X, Y, steps=2, batch_size=3)


def test_ddp_wrapped_models_are_searched_without_their_wrapper():
    model = net()
    wrapped = DistributedDataParallel.__new__(DistributedDataParallel)
    nn.Module.__init__(wrapped)
    wrapped.module = model
    assert ranks.underlying(wrapped) is model
    assert ranks.underlying(model) is model
    assert F.cross_entropy(model(X), Y).isfinite()


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def rank_of(process: int) -> str | None:
    with contextlib.suppress(OSError):
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        return next((v[5:].decode() for v in variables if v.startswith(b"RANK=")), None)
    return None


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the rank to kill in /proc")
def test_the_command_under_torchrun_ends_when_a_rank_is_killed_and_goes_on_when_started_again(tmp_path):
    pytest.importorskip("typer", reason="the command line needs evenhand[cli,report,io]")
    pytest.importorskip("jinja2", reason="the command line needs evenhand[cli,report,io]")
    pytest.importorskip("safetensors", reason="the command line needs evenhand[cli,report,io]")
    rows = [f"{i % 50},{(i * 7) % 31},{'fm'[i % 2]},{'yes' if (i * 7) % 31 > 15 else 'no'}" for i in range(210)]
    (tmp_path / "people.csv").write_text("\n".join(["age,pay,sex,approved", *rows]) + "\n")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "evenhand", "train", "people.csv", "--target", "approved", "--sensitive", "sex", "--out", "run"]
    command += ["--steps", "8", "--rho", "5", "--no-certificate", "--audit-rows", "4", "--hidden", "4"]
    place = {"cwd": tmp_path, "env": os.environ | {"OMP_NUM_THREADS": "1"}, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **place, stdout=subprocess.DEVNULL) as started:
        while not list(tmp_path.glob("run/stages/*.evenhand")):  # the first model is trained
            assert started.poll() is None, started.communicate()[1]
            time.sleep(0.02)
        (one,) = [child for child in children(started.pid) if rank_of(child) == "1"]
        os.kill(one, signal.SIGKILL)
        began = time.monotonic()
        _, errors = started.communicate(timeout=300)
    assert started.returncode != 0
    assert "SIGKILL" in errors or "-9" in errors
    assert time.monotonic() - began < 120
    assert not (tmp_path / "run" / "report.html").exists()
    again = subprocess.run(command, **place, stdout=subprocess.PIPE, timeout=600)
    assert again.returncode == 0, again.stderr
    assert "going on with the run in" in again.stderr
    assert again.stdout.count("Report:") == 1  # one voice
    assert (tmp_path / "run" / "report.html").exists()
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["models"]["fair"]["n"] > 0


if __name__ == "__main__":
    main(Path(sys.argv[1]))
