import numpy as np
import pytest
import torch

from evenhand.objectives.batch import Batch
from evenhand.objectives.clp import CLP
from evenhand.variations import Variations


def linear(weight):
    model = torch.nn.Linear(len(weight), 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.stack([torch.zeros(len(weight)), torch.as_tensor(weight)]))
    return model


X = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [1.0, 1.0]])
Y = torch.tensor([0, 1, 1, 0])
PAIRS = Variations(np.array([[[1, 0], [5, 0]], [[3, 1], [3, -1]]], dtype=np.float32), rows=[0, 2])


def pairing(variations=PAIRS, rho=2.0, rows=(0, 1, 2, 3), weight=None, model=None, **options):
    objective = CLP(variations, rho, **options)
    rows = torch.tensor(rows)
    batch = Batch(X[rows], Y[rows], None if weight is None else torch.tensor(weight), rows)
    model = linear([1.0, 2.0]) if model is None else model
    return (objective(model, batch) - objective.plain(model, batch)).item()


def test_pairs_have_a_closed_form():
    """Logits (0, w x): d_Y = (w delta)^2 / 2; delta = (4, 0) and (0, -2), so 8 for both; mean over who has pairs."""
    assert pairing() == pytest.approx(2.0 * 8.0)
    assert pairing(rows=(0,)) == pytest.approx(16.0)
    assert pairing(rows=(2, 2, 1)) == pytest.approx(16.0)


def test_rho_zero_is_plain_training():
    assert pairing(rho=0.0) == 0


def test_the_weights_weigh_the_pairs():
    model = linear([1.0, 0.0])  # d_Y = 8 for row 0 and 0 for row 2
    assert pairing(weight=[3.0, 1.0, 1.0, 1.0], model=model) == pytest.approx(2.0 * 8.0 * 3 / 4)


def test_rows_without_versions_only_have_the_loss():
    assert pairing(rows=(1, 3)) == 0
    assert CLP(PAIRS, 2.0)(linear([1.0, 2.0]), Batch(X, Y)) == CLP(PAIRS, 2.0).plain(linear([1.0, 2.0]), Batch(X, Y))


def test_a_model_that_ignores_the_difference_pays_nothing():
    values = np.random.default_rng(0).normal(size=(2, 5, 2)).astype(np.float32)
    values[:, :, 1] = values[:, :1, 1]
    x = torch.as_tensor(values[:, 0])
    objective = CLP(Variations(values, [0, 1]), 5.0)
    batch = Batch(x, torch.tensor([0, 1]), None, torch.tensor([0, 1]))
    assert objective(linear([0.0, 3.0]), batch).item() == objective.plain(linear([0.0, 3.0]), batch).item()


def test_every_other_version_is_drawn_equally_often_and_the_original_never():
    values = np.array([[[0.0], [1.0], [2.0], [3.0]]])
    objective = CLP(Variations(values, [0]), 1.0, generator=torch.Generator().manual_seed(0))
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    rows = torch.zeros(30_000, dtype=torch.long)
    objective.loss = lambda h, y: 0 * h[:, 0]
    mean = objective(model, Batch(torch.zeros(30_000, 1), rows, None, rows)).item()
    assert mean == pytest.approx((1 + 4 + 9) / 3, rel=0.02)


def test_the_same_seed_draws_the_same():
    values = np.random.default_rng(0).normal(size=(4, 6, 2)).astype(np.float32)
    found = [
        pairing(Variations(values, [0, 1, 2, 3]), generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    ]
    assert found[0] == found[1] != found[2]


def test_the_data_are_no_part_of_the_state():
    assert CLP(PAIRS, 1.0).state_dict() == {}


@pytest.mark.parametrize(
    ("variations", "rho", "message"),
    [
        (Variations(np.empty((0, 3)), []), 1.0, "nobody with versions"),
        (Variations([["a", "b"]], [0]), 1.0, "encode texts first"),
        (Variations(np.array([[["a"], ["b"]]]), [0]), 1.0, "encode texts first"),
        (Variations(np.zeros((1, 2)), [0]), 1.0, "expected vectors"),
        (Variations(np.zeros((1, 1, 2)), [0]), 1.0, "only version 0"),
        (Variations(np.full((1, 2, 2), np.nan), [0]), 1.0, "NaN"),
        (PAIRS, -1.0, "rho must be"),
    ],
)
def test_bad_input(variations, rho, message):
    with pytest.raises(ValueError, match=message):
        CLP(variations, rho)
