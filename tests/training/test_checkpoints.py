"""A run that was stopped, at any moment and in any way, goes on to the bits of one that was not."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from evenhand import FairMetric, FairRegularizer
from evenhand.objectives import SenSeI
from evenhand.output_distances import total_variation
from evenhand.regularizer import gradient_rule
from evenhand.search import GradientSearch
from evenhand.training import checkpoints
from evenhand.training.checkpoints import CheckpointError
from evenhand.training.loop import train
from evenhand.training.streams import mapped_batches

ROOT = Path(__file__).parents[2]
X = torch.rand(120, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] + X[:, 1] > 1).long()


class Stopped(Exception):
    pass


def stop_at(step):
    def progress(at, steps, record):
        if at >= step:
            raise Stopped

    return progress


def run(
    path=None, progress=False, stream=False, rho=3.0, weights_seed=0, search_seed=1, fair=None, data=None, **changes
):
    torch.manual_seed(weights_seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
    given = {"fair_metric": FairMetric(torch.eye(4)[:, :1]), "bounds": (0.0, 1.0)} | (fair or {})
    fair = FairRegularizer(**given, generator=torch.Generator().manual_seed(search_seed))
    settings = {"steps": 12, "batch_size": 20, "evaluate_every": 3, "generator": torch.Generator().manual_seed(2)}
    if path is not None:
        settings |= {"checkpoint": path, "checkpoint_every": 2, "resume": True}
    if stream:
        data = (mapped_batches(X, Y, 20, generator=torch.Generator().manual_seed(3)),)
    else:
        data, settings["validation"] = data or (X, Y), (X[:30], Y[:30])
    history = train(model, SenSeI(fair, rho), *data, progress=progress, **(settings | changes))
    return model, fair, history


def same(one, other):
    return (
        all(torch.equal(p, q) for p, q in zip(one[0].parameters(), other[0].parameters()))
        and torch.equal(one[1].lam, other[1].lam)
        and one[2] == other[2]
    )


@pytest.mark.parametrize("stream", [False, True], ids=["tensors", "stream"])
@pytest.mark.parametrize("step", [3, 6, 9])
def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path, step, stream):
    whole = run(stream=stream)
    with pytest.raises(Stopped):
        run(tmp_path / "run", stop_at(step), stream)
    resumed = run(tmp_path / "run", stream=stream)
    assert same(whole, resumed)


def test_checkpoints_change_nothing(tmp_path):
    assert same(run(), run(tmp_path / "run"))


def test_a_finished_run_is_not_trained_again(tmp_path):
    first = run(tmp_path / "run")
    torch.manual_seed(5)
    assert same(first, run(tmp_path / "run", progress=stop_at(0)))  # a single evaluation would raise


@pytest.mark.slow
def test_killed_processes_resume_to_the_same_bits():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "kills.py", "--kills", "4", "--seed", "1"],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def broken(data: bytes) -> dict[str, bytes]:
    middle = len(data) // 2
    return {
        "cut short": data[:middle],
        "a changed byte": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "empty": b"",
        "a text": b"step,loss\n1,0.5\n",
    }


@pytest.mark.parametrize("damage", ["cut short", "a changed byte", "empty", "a text"])
def test_a_damaged_file_is_an_error_and_the_last_good_one_is_kept(tmp_path, damage):
    path, whole = tmp_path / "run", run()
    with pytest.raises(Stopped):
        run(path, stop_at(9))
    data = broken(path.read_bytes())[damage]
    path.write_bytes(data)
    with pytest.raises(
        CheckpointError, match=r"run is not a checkpoint of evenhand, or is damaged .* go on from .*previous"
    ):
        run(path)
    assert path.read_bytes() == data
    path.unlink()
    assert same(whole, run(path))  # from .previous


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": 0.01}, "lr was 0.001 and is 0.01"),
        ({"steps": 13}, "steps was 12 and is 13"),
        ({"batch_size": 10}, "batch_size was 20 and is 10"),
        ({"rho": 50.0}, "objective.rho was 3.0 and is 50.0"),
        ({"fair": {"eps": 0.2}}, "objective.regularizer.eps was 0.1 and is 0.2"),
        ({"fair": {"lam": 2.0}}, "objective.regularizer.lam was"),
        ({"fair": {"lam_rule": gradient_rule(0.5)}}, "objective.regularizer.lam_rule.step was 0.01 and is 0.5"),
        (
            {"fair": {"fair_metric": FairMetric(torch.eye(4)[:, 1:2])}},
            "objective.regularizer.fair_metric.directions was",
        ),
        ({"fair": {"search": GradientSearch(full_steps=2)}}, "objective.regularizer.search.full_steps was 1 and is 2"),
        ({"fair": {"bounds": (0.0, 2.0)}}, "objective.regularizer.bounds.1 was 1.0 and is 2.0"),
        ({"fair": {"output_distance": total_variation}}, "objective.regularizer.output_distance.function was"),
        ({"search_seed": 5}, "objective.regularizer.generator was"),
        ({"weights_seed": 5}, "model.0.weight was"),
        ({"generator": torch.Generator().manual_seed(5)}, "batches was"),
        ({"data": (X.index_fill(0, torch.tensor([60]), 0.5), Y)}, "data.0 was"),
        ({"data": (X, 1 - Y)}, "data.1 was"),
        ({"sample_weight": torch.ones(120)}, "data.2 was None and is"),
        ({"validation": (X[30:60], Y[30:60])}, "validation.0 was"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused(tmp_path, change, message):
    with pytest.raises(Stopped):
        run(tmp_path / "run", stop_at(3))
    with pytest.raises(CheckpointError, match=f"checkpoint of another run: {message}"):
        run(tmp_path / "run", **change)


def test_a_finished_run_is_not_taken_for_another_one(tmp_path):
    run(tmp_path / "run", rho=0.0)
    with pytest.raises(CheckpointError, match=r"objective\.rho was 0\.0 and is 50\.0"):
        run(tmp_path / "run", rho=50.0)


def test_a_zip_of_another_program_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "run", "w") as archive:
        archive.writestr("tree.json", '{"dict": [["format", "other"]]}')
    with pytest.raises(CheckpointError, match="does not say 'evenhand checkpoint 1'"):
        run(tmp_path / "run")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_full_disk_is_an_error_that_names_the_file_and_keeps_the_last_good_one(tmp_path, monkeypatch):
    path = tmp_path / "run"
    checkpoints.save(path, {"step": 1})
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr(tempfile, "mkstemp", lambda **given: (full, str(tmp_path / "part")))
    with pytest.raises(OSError, match=r"could not be written \(No space left on device\).*last good one.*run'"):
        checkpoints.save(path, {"weights": torch.zeros(100_000)})
    assert checkpoints.load(path) == {"step": 1}


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 kB, for who may mount one."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root on Linux")
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"cannot mount a small disk: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_run_whose_disk_fills_up_goes_on_when_there_is_room_again(small_disk):
    path, whole = small_disk / "run", run()

    def fill(step, steps, record):
        if step >= 6:  # others write, too
            with contextlib.suppress(OSError), (small_disk / "filler").open("wb") as file:
                file.write(bytes(10**6))

    with pytest.raises(OSError, match=r"could not be written \(No space left on device\).*last good one.*run'"):
        run(path, fill)
    assert checkpoints.load(path)["step"] in (4, 6)
    assert not list(small_disk.glob("*.partial"))
    (small_disk / "filler").unlink()
    assert same(whole, run(path))


@pytest.mark.skipif(not Path("/sys/kernel").exists(), reason="needs a folder that nobody may write")
def test_a_read_only_folder_is_found_before_the_first_step():
    with pytest.raises(OSError, match=r"folder cannot be written.*/sys/kernel/run'"):
        run(Path("/sys/kernel/run"), stop_at(0))


def test_a_missing_folder_and_a_folder_as_file_are_found_before_the_first_step(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder .*nowhere of the checkpoint .* does not exist"):
        run(tmp_path / "nowhere" / "run", stop_at(0))
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        run(tmp_path, stop_at(0))


def test_the_model_gets_its_modes_back_after_an_exception():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
    model[2].eval()
    fair = FairRegularizer(FairMetric(torch.eye(4)[:, :1])).eval()
    objective = SenSeI(fair, 1.0)
    modes = [module.training for module in (*model.modules(), *objective.modules())]
    with pytest.raises(Stopped):
        train(model, objective, X, Y, steps=4, batch_size=20, progress=stop_at(1))
    assert [module.training for module in (*model.modules(), *objective.modules())] == modes


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None)
@given(tree=st.dictionaries(st.text(max_size=3), trees, max_size=3))
def test_any_tree_comes_back_as_it_was(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("tree") / "run"
    checkpoints.save(path, tree)
    assert checkpoints.load(path) == tree


def test_tensors_come_back_bit_by_bit(tmp_path):
    nan = torch.tensor([float("nan"), float("inf"), -0.0])
    kinds = [
        nan,
        nan.half(),
        nan.bfloat16(),
        nan.double(),
        torch.tensor(3),
        torch.ones(0, 4),
        torch.tensor([True]),
        nan[::2],
    ]
    checkpoints.save(tmp_path / "run", {"kinds": kinds})
    for was, came in zip(kinds, checkpoints.load(tmp_path / "run")["kinds"]):
        assert was.dtype == came.dtype
        assert was.shape == came.shape
        assert torch.equal(was.contiguous().reshape(-1).view(torch.uint8), came.reshape(-1).view(torch.uint8))


def test_what_a_checkpoint_cannot_hold_is_refused(tmp_path):
    with pytest.raises(TypeError, match="holds tensors, numbers and texts; got object"):
        checkpoints.save(tmp_path / "run", {"thing": object()})
    assert checkpoints.load(tmp_path / "run") is None


def test_one_tensor_is_not_named_many_times(tmp_path):
    """Each name would be a copy of its own: a small file could fill the memory."""
    path = tmp_path / "run"
    checkpoints.save(path, {"a": torch.zeros(1000), "b": 1})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(parts["tree.json"])
    tensor = tree["dict"][1][1]["dict"][0][1]
    tree["dict"][1][1]["dict"][1][1] = [tensor] * 20_000
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**parts, "tree.json": json.dumps(tree)}.items():
            archive.writestr(name, data)
    with pytest.raises(CheckpointError, match="named twice"):
        checkpoints.load(path)


def test_what_is_read_is_checked_first(tmp_path):
    path = tmp_path / "run"
    sound = {
        "tree.json": json.dumps({"dict": [["format", checkpoints.FORMAT], ["state", {"dict": []}]]}),
        "tensor0": "x",
    }
    for changes, packed, why in [
        ({}, {"tensor0"}, "a member is compressed"),
        ({"tree.json": "3"}, set(), "does not say"),
        (
            {"tree.json": json.dumps({"dict": [["format", checkpoints.FORMAT], ["state", [1]]]})},
            set(),
            "holds no state",
        ),
    ]:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in {**sound, **changes}.items():
                archive.writestr(name, data, zipfile.ZIP_DEFLATED if name in packed else zipfile.ZIP_STORED)
        with pytest.raises(CheckpointError, match=why):
            checkpoints.load(path)


def test_the_one_before_is_kept_and_removed_with_it(tmp_path):
    path = tmp_path / "run"
    checkpoints.save(path, {"step": 1})
    checkpoints.remove(path)
    assert list(tmp_path.iterdir()) == []
    for step in (1, 2, 3):
        checkpoints.save(path, {"step": step})
    assert checkpoints.load(path) == {"step": 3}
    path.unlink()  # killed between two names
    assert checkpoints.load(path) == {"step": 2}
    checkpoints.remove(path)
    assert list(tmp_path.iterdir()) == []
    checkpoints.remove(path)
