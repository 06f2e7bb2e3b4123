"""The gradient search: it never loses, costs what it says, stays in the box, and leaves the model as it found it."""

import copy
import itertools
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from evenhand.domain import Box, FreeBox
from evenhand.fair_metrics import FairMetric
from evenhand.output_distances import total_variation
from evenhand.search import (
    PAPER_BIOS,
    PAPER_TOXICITY,
    AdamAscent,
    DistanceGain,
    GradientSearch,
    NormalisedAscent,
    SignAscent,
)

D = 6


def net(seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, 3)).to(dtype)


def people(n=30, seed=1, dtype=torch.float32):
    return torch.randn(n, D, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def metric(k=2, dtype=torch.float32):
    return FairMetric(torch.randn(D, k, generator=torch.Generator().manual_seed(2), dtype=dtype))


def distance_gain(model, x):
    return DistanceGain(model(x).detach())


def objective(found, lam):
    return found.gain - lam * found.d_x


def seeded():
    return torch.Generator().manual_seed(3)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("bounds", [None, (-1.0, 2.0)])
def test_what_it_reports_is_what_the_model_does(fast, bounds):
    model, x, d_x = net(dtype=torch.float64), people(dtype=torch.float64).clamp(-1, 2), metric(dtype=torch.float64)
    gain = distance_gain(model, x)
    found = GradientSearch(fast=fast)(model, gain, x, d_x, 0.1, bounds, seeded())
    torch.testing.assert_close(found.gain, gain(model(found.x_worst)).detach())
    torch.testing.assert_close(found.d_x, d_x(x, found.x_worst))
    assert (found.d_x > 0).any()


def test_never_below_its_start():
    model, x, d_x = net(), people(), metric()
    y = torch.randint(3, (len(x),), generator=seeded())
    for gain in (distance_gain(model, x), lambda h: nn.functional.cross_entropy(h, y, reduction="none")):
        start = gain(model(x)).detach()
        # steps far too long: most points are worse than x itself
        for line_search in (True, False):
            search = GradientSearch(0.0, 3, 50.0, 3, noise=0.0, line_search=line_search)
            found = search(model, gain, x, d_x, 10.0, None, seeded())
            assert (objective(found, 10.0) >= start - 1e-6).all()


def test_more_steps_and_more_starts_never_lose():
    model, x, d_x, values = net(), people(), metric(), []
    gain = distance_gain(model, x)
    for steps, starts in [(0, 1), (5, 1), (20, 1)]:
        found = GradientSearch(0.1, steps, 0.05, 0, starts=starts)(model, gain, x, d_x, 1.0, (-2, 2), seeded())
        values.append(objective(found, 1.0))
    assert (values[0] <= values[1] + 1e-6).all()
    assert (values[1] <= values[2] + 1e-6).all()
    one = GradientSearch()(model, gain, x, d_x, 1.0, (-2, 2), seeded())
    four = GradientSearch(starts=4)(model, gain, x, d_x, 1.0, (-2, 2), seeded())
    assert (objective(four, 1.0) >= objective(one, 1.0) - 1e-6).all()
    assert (objective(four, 1.0) > objective(one, 1.0) + 1e-6).any()


@pytest.mark.parametrize("lam", [1.0, float("inf")])
def test_moves_inside_the_subspace_cost_exactly_nothing(lam):
    model, x, d_x = net(), people(), metric()
    found = GradientSearch(5.0, 50, 0.1, 0)(model, distance_gain(model, x), x, d_x, lam, None, seeded())
    assert (found.d_x == 0).all()
    assert found.v is None
    assert (found.x_worst - x).norm(dim=1).min() > 10
    torch.testing.assert_close(found.x_worst, x + found.u @ d_x.directions.T)


@settings(max_examples=25, deadline=None)
@given(
    low=st.floats(-3, 0),
    width=st.floats(0, 4),
    lam=st.sampled_from([0.0, 0.5, float("inf")]),
    k=st.integers(1, 4),
    line_search=st.booleans(),
)
def test_the_box_is_kept_exactly(low, width, lam, k, line_search):
    high = low + width
    model, x, d_x = net(), people().clamp(low, high), metric(k)
    search = GradientSearch(0.7, 6, 0.3, 3, line_search=line_search)
    found = search(model, distance_gain(model, x), x, d_x, lam, (low, high), seeded())
    low, high = torch.tensor(low), torch.tensor(high)  # in the precision of x
    assert (found.x_worst >= low).all()
    assert (found.x_worst <= high).all()
    if lam == float("inf"):
        assert (found.d_x == 0).all()
        assert d_x(x, found.x_worst).max() < 1e-9


def test_bounds_of_each_column():
    low, high = torch.arange(D) * -1.0, torch.arange(D) * 0.5
    model, x, d_x = net(), people().clamp(low, high), metric()
    found = GradientSearch(1.0, 10)(model, distance_gain(model, x), x, d_x, 0.0, (low, high.numpy()), seeded())
    assert (found.x_worst >= low).all()
    assert (found.x_worst <= high).all()
    assert (found.x_worst[:, 0] == 0).all()  # a column without room stays


def test_linear_model_along_a_sensitive_column_reaches_the_corner():
    """d_Y of a linear model grows with the move, so the best point in a box is one of its two ends: known exactly."""
    torch.manual_seed(0)
    model, x = nn.Linear(D, 2), people().clamp(-1, 1)
    d_x = FairMetric(torch.eye(D)[:, :1])
    found = GradientSearch(0.5, 10, full_steps=0)(
        model, distance_gain(model, x), x, d_x, float("inf"), (-1, 1), seeded()
    )
    room = torch.maximum(1 - x[:, 0], x[:, 0] + 1)
    slope = model.weight.detach()[:, 0].square().mean()
    # an ascent from noise may take the nearer end; it must reach an end, and with several starts the farther one
    assert ((found.x_worst[:, 0].abs() - 1).abs() < 1e-6).all()
    many = GradientSearch(0.5, 10, full_steps=0, starts=8, noise=0.5)(
        model, distance_gain(model, x), x, d_x, float("inf"), (-1, 1), seeded()
    )
    torch.testing.assert_close(many.gain, slope * room.square(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("search", "within"),
    [
        (GradientSearch(full_step=0.02, full_steps=400, line_search=False), 2e-3),
        (GradientSearch(full_step=5.0), 1e-9),  # the objective is a parabola along the line: one step is exact
    ],
    ids=["Adam", "line search"],
)
def test_full_stage_reaches_the_exact_maximum_of_a_linear_gain(search, within):
    """max over v of w.(x + v) - lam |v|^2 is at v = w / (2 lam), with value w.x + |w|^2 / (4 lam)."""
    torch.manual_seed(0)
    model, x, lam = nn.Linear(D, 1).double(), people(dtype=torch.float64), 2.0
    w = model.weight.detach()[0]
    d_x = FairMetric.euclidean(D, torch.float64)
    found = search(model, lambda h: h[:, 0], x, d_x, lam, None, seeded())
    torch.testing.assert_close(found.x_worst - x, (w / (2 * lam)).expand_as(x), rtol=0, atol=within)
    best = model(x)[:, 0].detach() + w.square().sum() / (4 * lam)
    torch.testing.assert_close(objective(found, lam), best, rtol=0, atol=within)
    assert (objective(found, lam) <= best + 1e-12).all()


def test_euclidean_metric_leaves_the_flat_start():
    model, x = net(), people()
    gain, d_x, lam = distance_gain(model, x), FairMetric.euclidean(D), 0.01
    found = GradientSearch()(model, gain, x, d_x, lam, None, seeded())
    moved = found.gain > 1e-4
    assert moved.float().mean() > 0.5
    three_steps = GradientSearch(full_step=0.1, full_steps=3, line_search=False)
    assert objective(found, lam).sum() > objective(three_steps(model, gain, x, d_x, lam, None, seeded()), lam).sum()
    assert (found.d_x[moved] > 0).all()


def test_reach_limits_each_coordinate():
    model, x = net(), people()
    found = GradientSearch(5.0, 20, reach=1.5)(model, distance_gain(model, x), x, metric(), 1.0, None, seeded())
    assert found.u.abs().max() == 1.5


def noisy_models():
    torch.manual_seed(0)
    return {
        "BatchNorm": nn.Sequential(nn.Linear(D, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2)),
        "dropout": nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2)),
        "frozen": nn.Sequential(nn.Linear(D, 16).requires_grad_(False), nn.ReLU(), nn.Linear(16, 2)),
        "norm first": nn.Sequential(nn.BatchNorm1d(D), nn.Linear(D, 2)),
    }


def trace(model):
    return (
        [m.training for m in model.modules()],
        [p.requires_grad for p in model.parameters()],
        [p.grad if p.grad is None else p.grad.clone() for p in model.parameters()],
        {name: value.clone() for name, value in model.state_dict().items()},
    )


def assert_same_trace(before, after):
    assert before[:2] == after[:2]
    for a, b in zip(before[2], after[2]):
        assert (a is None) == (b is None)
        assert a is None or torch.equal(a, b)
    for name, value in before[3].items():
        assert torch.equal(value, after[3][name]), name


@pytest.mark.parametrize("grads", [False, True])
@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("name", noisy_models())
def test_the_model_is_left_as_it_was_found(name, fast, grads):
    model, x = noisy_models()[name].train(), people()
    model[-1].eval()  # modes of submodules differ
    if grads:
        model(x).sum().backward()
    before = trace(model)
    gain = DistanceGain(copy.deepcopy(model).eval()(x).detach())
    GradientSearch(fast=fast)(model, gain, x, metric(), 1.0, None, seeded())
    assert_same_trace(before, trace(model))

    def fails(h):
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        GradientSearch(fast=fast)(model, fails, x, metric(), 1.0, None, seeded())
    assert_same_trace(before, trace(model))


def test_dropout_is_off_inside():
    model, x = noisy_models()["dropout"].train(), people()
    h_x = copy.deepcopy(model).eval()(x).detach()
    found = GradientSearch(subspace_steps=0, full_steps=0, noise=0.0)(model, DistanceGain(h_x), x, metric(), 1.0)
    assert (found.gain < 1e-12).all()  # with dropout on, h(x) would differ from itself


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_works_without_gradients_around_it(context, fast):
    model, x, d_x = net(), people(), metric()
    expected = GradientSearch(fast=fast)(model, distance_gain(model, x), x, d_x, 1.0, None, seeded())
    with context():
        again = x.clone()
        found = GradientSearch(fast=fast)(model, DistanceGain(model(again).clone()), again, d_x, 1.0, None, seeded())
    torch.testing.assert_close(found.x_worst, expected.x_worst, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fast", [True, False])
def test_same_generator_same_result_and_the_global_one_is_not_touched(fast):
    model, x, d_x = net(), people(), metric()
    state = torch.get_rng_state()
    search = GradientSearch(fast=fast)
    one, two = (search(model, distance_gain(model, x), x, d_x, 1.0, None, seeded()) for _ in range(2))
    assert torch.equal(one.x_worst, two.x_worst)
    assert torch.equal(one.gain, two.gain)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("ascent", [AdamAscent, SignAscent, NormalisedAscent])
def test_every_ascent_finds_something(ascent):
    model, x = net(), people()
    found = GradientSearch(ascent=ascent)(model, distance_gain(model, x), x, metric(), 1.0, None, seeded())
    assert (found.gain > 1e-5).all()


def test_other_output_distances_use_the_fast_path_too():
    model, x, d_x = net(dtype=torch.float64), people(dtype=torch.float64), metric(dtype=torch.float64)
    gain = DistanceGain(model(x).detach(), total_variation)
    fast, plain = (GradientSearch(fast=f)(model, gain, x, d_x, 1.0, None, seeded()) for f in (True, False))
    torch.testing.assert_close(fast.x_worst, plain.x_worst)


def test_any_callable_is_a_model():
    x = people(dtype=torch.float64)
    found = GradientSearch()(
        lambda z: z.square(), lambda h: h.sum(1), x, metric(dtype=torch.float64), 0.1, None, seeded()
    )
    assert (found.gain > x.square().sum(1)).all()


def test_a_model_without_gradients_is_refused():
    x = people()
    with pytest.raises(ValueError, match="CandidateSearch"):
        GradientSearch()(lambda z: z.detach().round(), lambda h: h.sum(1), x, metric(), 1.0)


def test_a_constant_model_has_nothing_to_find():
    model = nn.Sequential(nn.Linear(D, 4), nn.ReLU(), nn.Linear(4, 2))
    nn.init.zeros_(model[2].weight)
    x = people()
    found = GradientSearch()(model, distance_gain(model, x), x, metric(), 1.0, None, seeded())
    assert (found.gain == 0).all()
    assert torch.equal(found.x_worst, x)


def test_wrong_width_is_named():
    with pytest.raises(ValueError, match="built for 6 features"):
        GradientSearch()(net(), lambda h: h.sum(1), torch.randn(4, 5), metric(), 1.0)


def test_presets_are_the_papers_and_a_search_can_be_pickled():
    assert (PAPER_BIOS.subspace_step, PAPER_BIOS.subspace_steps) == (0.1, 50)
    assert (PAPER_BIOS.full_step, PAPER_BIOS.full_steps) == (0.01, 10)
    assert (PAPER_TOXICITY.subspace_steps, PAPER_TOXICITY.full_steps) == (10, 0)
    model, x = net(), people(4)
    PAPER_TOXICITY(model, distance_gain(model, x), x, metric(), 1.0)
    assert pickle.loads(pickle.dumps(PAPER_TOXICITY)) == PAPER_TOXICITY


def freed_table(seed=0):
    """People with two continuous and three one-hot columns, a sensitive binary one, and a learned direction."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.zeros(60, 6)
    x[:, :2] = torch.randn(60, 2, generator=generator)
    x[torch.arange(60), 2 + torch.randint(0, 3, (60,), generator=generator)] = 1.0
    x[:, 5] = torch.randint(0, 2, (60,), generator=generator)
    learned = torch.tensor([0.3, -0.2, 0.8, -0.7, 0.1, 0.0])
    metric = FairMetric(torch.stack([torch.eye(6)[5], learned], 1))
    box = Box([-4.0, -4, 0, 0, 0, 0], [4.0, 4, 1, 1, 1, 1], blocks=[(2, 3, 4)], binary=[5])
    return x, metric, box.freed(metric.directions, x)


def box_of(free):
    """The domain as training sees it: blocks as separate columns."""
    plain = Box(free.box.low, free.box.high)
    return FreeBox(plain, free.free, free.free_low, free.free_high)


def test_free_directions_reach_the_ends_of_their_range():
    """Of a linear model, at eps = 0: the closed form over sex and the ends of the learned coordinate."""
    x, metric, free = freed_table()
    model = nn.Linear(6, 2)
    search = GradientSearch(subspace_step=2.0, subspace_steps=12, starts=8)  # it climbs to the end it starts towards
    gain = DistanceGain(model(x).detach())
    found = search(model, gain, x, metric, float("inf"), free, torch.Generator().manual_seed(0))
    along = free.free[:, 0].float()
    z = x @ along
    slopes = (model.weight @ torch.stack([along, torch.eye(6)[5]], 1)).detach()  # (2 logits, 2 moves)
    moves = itertools.product((float(free.free_low) - z, float(free.free_high) - z), (-x[:, 5], 1 - x[:, 5]))
    best = torch.stack([(slopes @ torch.stack(move)).square().mean(0) for move in moves]).amax(0)
    assert (found.gain <= best + 1e-4).all()
    assert (found.gain >= 0.98 * best).float().mean() > 0.9
    assert found.d_x.abs().max() < 1e-6


@pytest.mark.parametrize("line_search", [True, False])
def test_worst_cases_stay_in_the_freed_domain_and_beat_the_box(line_search):
    x, metric, free = freed_table()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    search = GradientSearch(subspace_steps=6, full_steps=4, line_search=line_search)
    gain = DistanceGain(model(x).detach())
    for lam in (0.0, 0.3):
        found = search(model, gain, x, metric, lam, free, torch.Generator().manual_seed(0))
        probes = torch.randn(300, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        assert (found.x_worst.double() @ probes.T <= box_of(free).support(probes) + 1e-5).all()
        torch.testing.assert_close(found.d_x, metric(x, found.x_worst), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(found.gain, gain(model(found.x_worst)).detach(), atol=1e-5, rtol=1e-4)
        boxed = search(model, gain, x, metric, lam, free.box, torch.Generator().manual_seed(0))
        assert (found.gain - lam * found.d_x).mean() > (boxed.gain - lam * boxed.d_x).mean()


def test_moves_are_told_in_the_metric_s_own_directions():
    x, metric, free = freed_table()
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    found = GradientSearch()(model, DistanceGain(model(x).detach()), x, metric, 1.0, free)
    rebuilt = x + found.u @ metric.directions.T + found.v
    torch.testing.assert_close(rebuilt, found.x_worst, atol=1e-5, rtol=1e-5)


def test_free_directions_that_cost_something_are_refused():
    x, _, free = freed_table()
    other = FairMetric(torch.eye(6)[:, :1])
    model = nn.Linear(6, 2)
    with pytest.raises(ValueError, match="costs something under this metric"):
        GradientSearch()(model, DistanceGain(model(x).detach()), x, other, 1.0, free)


def test_the_free_coordinate_goes_to_the_ends_of_its_range_and_no_further():
    """h = (a, -a) of a = A . x, an oblique direction with entries of both signs: the worst u is an end of its range."""
    direction, seeded = torch.tensor([[0.6], [-0.8]]), torch.Generator().manual_seed(0)
    model = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.cat([direction.T, -direction.T]))
    x = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    found = GradientSearch(subspace_step=5.0, subspace_steps=8, full_steps=0, starts=8)(
        model, DistanceGain(model(x).detach()), x, FairMetric(direction), float("inf"), (0.0, 1.0), seeded
    )
    up = torch.minimum((1 - x[:, 0]) / 0.6, x[:, 1] / 0.8)  # u > 0 raises the first column and lowers the second
    down = torch.minimum(x[:, 0] / 0.6, (1 - x[:, 1]) / 0.8)
    torch.testing.assert_close(found.u[:, 0], torch.where(up > down, up, -down), rtol=1e-4, atol=1e-4)
    assert ((found.x_worst >= 0) & (found.x_worst <= 1)).all()


def test_people_outside_the_box_and_in_the_domain_need_not_pay_to_stay():
    """x = M p + A z: what the columns' limits hold is p. The worst case of a linear model has a closed form."""
    free = torch.tensor([[2.0], [1.0], [0.0]], dtype=torch.float64) / 5**0.5
    domain = FreeBox(Box(0.0, 1.0, d=3), free, [-4.0], [4.0])
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(30, 3, generator=generator, dtype=torch.float64)
    z = 6 * torch.rand(30, 1, generator=generator, dtype=torch.float64) - 3
    x = p - (p @ free) @ free.T + z @ free.T
    assert 0 < domain.box.contains(x).sum() < 30
    assert domain.contains(x).all()
    weight = torch.tensor([[1.0, 0.5, 0.0]], dtype=torch.float64)  # along the free direction only
    h_x = x @ weight.T
    found = GradientSearch(subspace_steps=300, starts=12)(
        lambda x: x @ weight.T, DistanceGain(h_x), x, FairMetric(free), 100.0, domain, generator
    )
    assert domain.contains(found.x_worst).all()
    assert (found.d_x < 1e-6).all()
    farthest = torch.maximum(4 - z, z + 4)[:, 0]
    torch.testing.assert_close(found.gain, (farthest * (weight @ free)[0, 0]).square(), rtol=1e-3, atol=0.0)


def test_a_binary_column_is_flipped_in_every_row():
    """Half of the noise leads out of the box, and at x' = x there is no slope to come back along."""
    x = people().clamp(-1, 1)
    x[:, 0] = (x[:, 0] > 0).float()
    low, high = torch.full((D,), -1.0), torch.ones(D)
    low[0] = 0.0
    model, alone = net(), FairMetric(torch.eye(D)[:, :1])
    flipped = x.clone()
    flipped[:, 0] = 1 - flipped[:, 0]
    for lam in (5.0, float("inf")):
        found = GradientSearch(full_steps=0)(model, distance_gain(model, x), x, alone, lam, (low, high), seeded())
        assert (found.x_worst[:, 0] - x[:, 0]).abs().min() > 0.5
        assert (found.gain >= 0.99 * distance_gain(model, x)(model(flipped))).all()


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("bounds", [None, "unit columns", "freed"])
def test_on_its_way_it_meets_worst_cases_that_cost_nothing(bounds, fast):
    """They are those of a search which may do nothing else."""
    if bounds == "freed":
        x, d_x, domain = freed_table()
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, 3))
    else:
        x, model = people().clamp(-1, 1), net()
        d_x = metric() if bounds is None else FairMetric(torch.eye(D)[:, :2])
        domain = None if bounds is None else (-1.0, 1.0)
    gain, search, rows = distance_gain(model, x), GradientSearch(fast=fast), torch.arange(0, len(x), 3)
    found = search(model, gain, x, d_x, 0.1, domain, seeded())
    alone = search(model, gain, x, d_x, float("inf"), domain, seeded())
    assert (found.d_x > 0).any()
    met, everybody = found.free(rows), found.free(None)
    torch.testing.assert_close(met.gain, gain(model(everybody.x_worst)).detach()[rows])
    torch.testing.assert_close(met.gain, alone.gain[rows])
    torch.testing.assert_close(met.x_worst, alone.x_worst[rows])
    torch.testing.assert_close(met.u, alone.u[rows])
    torch.testing.assert_close(d_x(x[rows], met.x_worst), torch.zeros(len(rows)), atol=1e-8, rtol=0)
    assert (met.z is None) == (not fast)
    if fast:
        torch.testing.assert_close(met.z, model[0](met.x_worst).detach())


def test_where_the_box_holds_somebody_back_nothing_is_said_of_free_moves():
    x, model = people().clamp(-1, 1), net()
    found = GradientSearch()(model, distance_gain(model, x), x, metric(), 0.1, (-1.0, 1.0), seeded())
    assert (found.d_x > 0).any()
    assert found.free is None
