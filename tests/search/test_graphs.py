"""A compiled step leaves its graph once for the regularizer, and nobody else pays for the compiler."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from evenhand.fair_metrics import FairMetric
from evenhand.objectives import Batch, SenSeI
from evenhand.regularizer import FairRegularizer
from evenhand.search.graphs import not_compiled

WITHOUT_A_COMPILER = """
import sys, torch
from evenhand.fair_metrics import FairMetric
from evenhand.regularizer import FairRegularizer
FairRegularizer(FairMetric(torch.eye(3)[:, :1]))(torch.nn.Linear(3, 2), torch.rand(5, 3))
print("torch._dynamo" in sys.modules)
"""


def test_the_compiler_is_not_imported():
    run = subprocess.run([sys.executable, "-c", WITHOUT_A_COMPILER], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_a_function_stays_what_it_is():
    @not_compiled
    def twice(x, *, more=0):
        """Two times x."""
        return 2 * x + more

    assert twice(3, more=1) == 7
    assert (twice.__name__, twice.__doc__) == ("twice", "Two times x.")


def step(kind, model, x, y):
    generator = torch.Generator().manual_seed(1)
    fair = FairRegularizer(FairMetric(torch.eye(4)[:, :1]), bounds=(0.0, 1.0), generator=generator)
    if kind == "objective":
        objective = SenSeI(fair, 5.0, free=0.5)
        return lambda: 2 * objective(model, Batch(x, y))
    if kind == "evaluate":
        return lambda: F.cross_entropy(model(x), y) + 5 * fair.evaluate(model, x).value
    return lambda: F.cross_entropy(model(x), y) + 5 * fair(model, x)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # of the compiler, at every break
@pytest.mark.parametrize("kind", ["regularizer", "evaluate", "objective"])
def test_a_compiled_step_gives_the_same_in_one_break(kind):
    from torch._dynamo.utils import counters

    torch.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 2))
    x, y = torch.rand(64, 4), torch.arange(64) % 2
    results = []
    for compiled in (False, True):
        torch._dynamo.reset()
        counters.clear()
        call = step(kind, model, x, y)
        call = torch.compile(call, backend="eager") if compiled else call
        model.zero_grad()
        values = [call() for _ in range(3)]
        sum(values).backward()
        results.append([*values, *(p.grad for p in model.parameters())])
    for eager, graph in zip(*results):
        torch.testing.assert_close(graph, eager)
    assert len(counters["graph_break"]) == 1
    assert counters["frames"]["total"] <= 6  # those of the step, before the break and behind it
