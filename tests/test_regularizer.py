"""The dual value, its gradient, its lam."""

import copy
import functools
import weakref
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from evenhand import ranks
from evenhand.audit import audit
from evenhand.domain import Box
from evenhand.fair_metrics import FairMetric
from evenhand.output_distances import mean_squared_logits, total_variation
from evenhand.regularizer import FairRegularizer, check_inside, gradient_rule, ratio_rule
from evenhand.search import GradientSearch
from evenhand.search.worst_cases import WorstCases

D = 5


def net(dtype=torch.float64):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, 3)).to(dtype)


def people(n=40, dtype=torch.float64):
    return torch.rand(n, D, generator=torch.Generator().manual_seed(1), dtype=dtype)


def first_column(dtype=torch.float64):
    return FairMetric(torch.eye(D, dtype=dtype)[:, :1])


def regularizer(**options):
    options = {"eps": 0.1, "bounds": (0.0, 1.0), "lam": 0.5, "generator": torch.Generator().manual_seed(2)} | options
    return FairRegularizer(first_column(), **options)


@pytest.mark.parametrize("fast", [True, False])
def test_value_is_the_dual_and_its_gradient_that_of_step_3(fast):
    model, x, fair = net(), people(), regularizer(search=GradientSearch(fast=fast)).eval()
    result = fair.evaluate(model, x)
    result.value.backward()
    frozen = copy.deepcopy(model)
    frozen.zero_grad()
    x_worst = result.found.x_worst.detach()
    d_y, d_x = mean_squared_logits(frozen(x), frozen(x_worst)), first_column()(x, x_worst)
    lam = 0.5
    torch.testing.assert_close(result.value, lam * 0.1 + (d_y - lam * d_x).mean())
    d_y.mean().backward()
    for ours, autograd in zip(model.parameters(), frozen.parameters()):
        torch.testing.assert_close(ours.grad, autograd.grad)
    torch.testing.assert_close(result.d_y, d_y.mean())
    torch.testing.assert_close(result.h_x, model(x))


def test_gradient_rule_by_hand():
    rule = gradient_rule(0.5)
    assert rule(torch.tensor(1.0), torch.tensor(0.3), 0.1).item() == pytest.approx(1.1)
    assert rule(torch.tensor(1.0), torch.tensor(0.0), 0.1).item() == pytest.approx(0.95)
    assert rule(torch.tensor(0.01), torch.tensor(0.0), 0.1).item() == 0


def test_ratio_rule_by_hand():
    rule = ratio_rule()
    assert rule(torch.tensor(1.0), torch.tensor(0.4), 0.1).item() == pytest.approx(1 + 4 * 0.3)
    assert rule(torch.tensor(2.0), torch.tensor(0.05), 0.1).item() == pytest.approx(2 - 2 * 0.05)
    assert rule(torch.tensor(1.0), torch.tensor(0.0), 0.1).item() == pytest.approx(1e-5)
    assert rule(torch.tensor(1.0), torch.tensor(9.0), 0.1).item() == 10
    assert torch.isfinite(rule(torch.tensor(1.0), torch.tensor(0.0), 0.0))


def test_lam_follows_the_rule_in_train_mode_and_rests_in_eval_mode():
    model, x, fair = net(), people(), regularizer(lam_rule=gradient_rule(2.0))
    result = fair.evaluate(model, x)
    assert fair.lam.item() == pytest.approx(max(0.0, 0.5 - 2.0 * (0.1 - result.d_x.item())), abs=1e-6)
    fair.eval()
    before = fair.lam.clone()
    fair(model, x)
    assert torch.equal(fair.lam, before)


def test_lam_is_saved_and_moved():
    fair = regularizer(lam=0.7)
    assert fair.state_dict()["lam"].item() == pytest.approx(0.7)
    fresh = regularizer(lam=0.1)
    fresh.load_state_dict(fair.state_dict())
    assert fresh.lam.item() == pytest.approx(0.7)
    assert fresh.to(torch.float64).lam.dtype == torch.float64
    assert "eps=0.1, lam=0.7" in repr(fresh)


@pytest.mark.parametrize("eps", [0, 0.0])
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_eps_zero_allows_only_free_moves(eps, bounds):
    model, x, fair = net(), people(), regularizer(eps=eps, bounds=bounds)
    result = fair.evaluate(model, x)
    assert (result.found.d_x == 0).all()
    torch.testing.assert_close(result.value, result.d_y)
    assert fair.lam.item() == 0.5
    for _ in range(3):
        assert torch.isfinite(fair(model, x))


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_a_model_that_ignores_the_sensitive_column_is_fair_at_eps_zero(bounds):
    model, x = net(), people()
    with torch.no_grad():
        model[0].weight[:, 0] = 0
    assert regularizer(eps=0, bounds=bounds)(model, x).item() == pytest.approx(0, abs=1e-20)
    with torch.no_grad():
        model[0].weight[:, 0] = 1
    assert regularizer(eps=0, bounds=bounds)(model, x).item() > 1e-4


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_works_without_gradients(context):
    model, x = net(), people()
    expected = regularizer()(model, x)
    with context():
        value = regularizer()(model, people())
    torch.testing.assert_close(value.clone(), expected.detach())


def test_dropout_is_no_unfairness_and_batch_statistics_rest():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(D, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2)).double()
    x, before = people(), copy.deepcopy(model.state_dict())
    with torch.no_grad():
        model[0].weight[:, 0] = 0
    before = copy.deepcopy(model.state_dict())
    assert regularizer(eps=0)(model.train(), x).item() == pytest.approx(0, abs=1e-20)
    assert model.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_other_output_distances():
    model, x = net(), people()
    result = regularizer(output_distance=total_variation).evaluate(model, x)
    assert 0 < result.d_y.item() <= 1
    torch.testing.assert_close(result.found.gain, total_variation(model(x), model(result.found.x_worst)).detach())


def test_one_line_in_a_loop_makes_a_model_fairer():
    x = people(200, torch.float32)
    y = (x[:, 0] + x[:, 1] > 1).long()
    judge = FairRegularizer(first_column(torch.float32), eps=0, bounds=(0.0, 1.0), generator=torch.Generator())
    values = []
    for rho in (0.0, 20.0):
        model = net(torch.float32)
        fair = FairRegularizer(first_column(torch.float32), eps=0.0, bounds=(0.0, 1.0), generator=torch.Generator())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(60):
            loss = nn.functional.cross_entropy(model(x), y) + rho * fair(model, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        values.append(judge.eval()(model, x).item())
    assert values[1] < 0.1 * values[0]


class Squeezed(nn.Module):
    """One logit without an axis of its own, (n,), as many binary classifiers give."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)[:, 0]


def test_one_logit_without_an_axis_is_one_logit_of_each_person():
    model, x = nn.Sequential(net(), nn.Linear(3, 1).double()), people()
    flat = regularizer().evaluate(Squeezed(model), x)
    column = regularizer(search=GradientSearch(fast=False)).evaluate(model, x)
    torch.testing.assert_close(flat.value, column.value)
    torch.testing.assert_close(flat.found.gain, (model(x) - model(flat.found.x_worst))[:, 0].square().detach())


def test_rows_outside_bounds_are_counted_and_their_columns_named():
    model, x = net(), people()
    x[3, 2], x[5, 4], x[6, 4] = 11.125, -1.0, 1.5
    with pytest.raises(ValueError, match=r"3 of 40 rows lie outside bounds, in 2 of 5 columns: \[2, 4\]") as error:
        regularizer()(model, x)
    assert "11.125" not in str(error.value)
    with pytest.raises(ValueError, match="rows lie outside bounds"):
        regularizer().eval()(model, torch.randn(40, D, dtype=torch.float64))
    regularizer(bounds=None)(model, x)
    nearly = people().clamp(0.1)
    nearly[0, 0] = 1 + 1e-9  # rounding
    regularizer()(model, nearly)
    with pytest.raises(ValueError, match="40 of 40 rows"):  # in any units
        regularizer(bounds=(0.0, 1e-8))(model, people() * 1e-8 + 1.5e-8)


def test_the_domain_says_who_lies_inside():
    """Along (1, 1) people may run from (-1, -1) to (2, 2), though each column of the box ends at 0 and 1."""
    free = torch.tensor([[1.0], [1.0], [0.0]], dtype=torch.float64) / 2**0.5
    ends = torch.tensor([[-1.0, -1.0, 0.0], [2.0, 2.0, 1.0]], dtype=torch.float64)
    domain = Box(0.0, 1.0, d=3).freed(free, ends)
    torch.manual_seed(0)
    model, metric = nn.Linear(3, 2).double(), FairMetric(free)
    search, generator = GradientSearch(subspace_steps=300, starts=12), torch.Generator().manual_seed(0)
    fair = FairRegularizer(metric, eps=0.0, bounds=domain, search=search, generator=generator)
    x = torch.tensor([[1.5, 1.5, 0.5], [-0.5, -0.2, 0.0], [0.5, 0.5, 1.0]], dtype=torch.float64)
    z = (x @ free)[:, 0]
    run = torch.maximum(z + 2**0.5, 2 * 2**0.5 - z)  # to the farther end
    expected = run.square() * (model.weight @ free).square().mean()
    torch.testing.assert_close(fair.evaluate(model, x).found.gain, expected, rtol=1e-3, atol=0.0)
    for inside in (x, x.float()):
        check_inside(domain, inside)
    too_far = torch.tensor([[2.2, 2.2, 0.5], [2.0, 0.5, 0.5], [0.5, 0.5, 0.5]], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"2 of 3 rows lie outside bounds"):
        fair(model, too_far)
    assert domain.contains(too_far).tolist() == [False, False, True]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_binary_columns_and_blocks_belong_to_the_domain(dtype):
    low, high = [-0.7312] + [0.0] * 4, [1.3677] + [1.0] * 4
    model, metric = net(dtype), FairMetric(torch.eye(D)[:, 4:])
    inside = torch.tensor([[-0.7312, 1, 0, 0, 0.5], [1.3677, 0, 0, 1, 0.25]], dtype=dtype)
    for box, column in ((Box(low, high, binary=[0, 1]), 0), (Box(low, high, blocks=[[1, 2, 3]]), 1)):
        FairRegularizer(metric, bounds=box)(model, inside)
        between = inside.clone()
        between[1, column] = 0.25
        with pytest.raises(ValueError, match=r"1 of 2 rows .*binary or one-hot columns.*bounds\.hull\(\)") as error:
            FairRegularizer(metric, bounds=box)(model, between)
        assert "0.25" not in str(error.value)
    FairRegularizer(metric, bounds=Box(low, high, binary=[0]).hull())(model, between)


def test_a_step_that_overflowed_is_left_to_the_scaler():
    z = people().requires_grad_() * torch.where(torch.arange(40) == 3, torch.nan, 1.0)[:, None].double()
    for bounds in ((0.0, 1.0), Box(0.0, 1.0, d=D), Box(0.0, 1.0, d=D).freed(torch.eye(D)[:, :1], people())):
        assert torch.isnan(regularizer(bounds=bounds)(net(), z))


class Wrapped:
    def __init__(self, model):
        self.model = model

    def logits(self, x):
        return self.model(x)


def test_a_module_behind_a_function_is_in_eval_mode_too():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2)).double().train()
    x, expected = people(), regularizer(search=GradientSearch(fast=False)).evaluate(model, people())
    for hidden in (
        lambda z: model(z),
        model.forward,
        Wrapped(model).logits,
        functools.partial(Wrapped.logits, Wrapped(model)),
    ):
        result = regularizer(search=GradientSearch(fast=False)).evaluate(hidden, x)
        torch.testing.assert_close(result.value, expected.value)
        assert model[2].training


def test_a_module_that_no_look_at_the_function_finds_is_found_when_it_runs():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(D, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 2)).double().train()
    expected = regularizer(search=GradientSearch(fast=False)).evaluate(model, people())
    statistics = model[1].running_mean.clone()

    class Slotted:
        __slots__ = ("parts",)

        def __call__(self, x):
            return self.parts[0](x)

    class Static:
        net = model

        @staticmethod
        def logits(x):
            return Static.net(x)

    slotted, behind = Slotted(), weakref.ref(model)
    slotted.parts = [model]
    for hidden in (slotted, Static.logits, lambda x: behind()(x)):
        fair = regularizer(search=GradientSearch(fast=False))
        torch.testing.assert_close(fair.evaluate(hidden, people()).value, expected.value)
        assert all(module.training for module in model)
        assert torch.equal(model[1].running_mean, statistics)
        assert len(fair.look(hidden, people()).parameters()) == len(list(model.parameters()))


class Noisy(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.linear, self.norm = kind, nn.Linear(D, 2), nn.BatchNorm1d(2, track_running_stats=False)

    def forward(self, x):
        h = self.linear(x)
        if self.kind == "dropout":
            return F.dropout(h, 0.3)  # the classic: training=self.training is forgotten
        return self.norm(h) if self.kind == "batch" else h


@pytest.mark.parametrize("kind", ["dropout", "batch", "sound"])
@pytest.mark.parametrize("n", [5, 40])
def test_a_model_whose_answer_is_not_the_persons_is_an_error(kind, n):
    model, x = Noisy(kind).double(), people()[:n]
    for form in (model, lambda z: model(z)):
        if kind == "sound":
            assert torch.isfinite(regularizer()(form, x))
            continue
        with pytest.raises(ValueError, match="changes from call to call, or with the others"):
            regularizer()(form, x)


def test_a_last_batch_of_one_whose_axis_was_squeezed_away():
    linear = nn.Linear(D, 1).double()
    squeezed, kept = (regularizer()(model, people()[:1]) for model in (lambda x: linear(x).squeeze(), linear))
    assert squeezed.isfinite()
    torch.testing.assert_close(squeezed, kept)


def ends(model, gain, x, fair_metric, lam, bounds=None, generator=None, rows=None):
    """The worse of two fixed moves, one of which costs something: no chance in it, so that batches can be compared."""
    moves = [torch.zeros_like(x), torch.full_like(x, 0.4)]
    with torch.no_grad():
        gains = torch.stack([gain(model(x + move)) - lam * fair_metric.cost(move) for move in moves])
    x_worst = torch.where((gains[1] > gains[0])[:, None], x + moves[1], x)
    return WorstCases(x_worst, fair_metric(x, x_worst), gains.max(0).values)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_lam_steps_once_per_optimizer_step_however_many_batches_it_has(optimizer):
    x, lams = people(64), []
    for parts in (1, 4):
        model, fair = net(), regularizer(search=ends, bounds=None, lam_rule=gradient_rule(0.2))
        own = optimizer(model.parameters(), lr=0.01)
        for _ in range(6):
            own.zero_grad()
            for part in x.tensor_split([10, 30, 31] if parts > 1 else []):
                (fair(model, part) * len(part) / len(x)).backward()
            own.step()
        lams.append(fair.lam.item())
        parameters = torch.cat([p.detach().ravel() for p in model.parameters()])
        lams.append(parameters)
    assert lams[0] != pytest.approx(0.5, abs=0.01)
    assert lams[0] == pytest.approx(lams[2], abs=1e-6)
    torch.testing.assert_close(lams[1], lams[3], rtol=1e-5, atol=1e-6)


def shift(model, gain, x, fair_metric, lam, bounds=None, generator=None, rows=None):
    """A fixed move."""
    x_worst = x + 0.3
    with torch.no_grad():
        return WorstCases(x_worst, fair_metric(x, x_worst), gain(model(x_worst)))


class Clamped(nn.Module):
    """Keeps its weights small whenever it runs."""

    def __init__(self):
        super().__init__()
        self.rows, self.head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        with torch.no_grad():
            self.rows.weight.clamp_(-0.3, 0.3)
        return self.head(self.rows(x).tanh())


class Normed(nn.Module):
    """Rows of an embedding that are scaled whenever they are looked up."""

    def __init__(self):
        super().__init__()
        self.rows, self.head = nn.Embedding(9, 4, max_norm=0.5), nn.Linear(4, 2)

    def forward(self, tokens):
        return self.head(self.rows(tokens))


@pytest.mark.parametrize(("kind", "options"), [(Clamped, {}), (Normed, {"at": "rows"})])
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_weights_that_the_model_changes_when_it_runs_are_no_step(kind, options, optimizer):
    torch.manual_seed(0)
    model, free = kind(), [[1.0], *[[0.0]] * (2 if kind is Clamped else 3)]
    fair = FairRegularizer(FairMetric(free), eps=0.1, search=shift, lam_rule=gradient_rule(0.01), **options)
    own = optimizer(model.parameters(), lr=0.01)
    for _ in range(5):
        own.zero_grad()
        for _ in range(4):
            x = torch.randint(9, (6,)) if kind is Normed else torch.rand(6, 3)
            (model(x).square().mean() + fair(model, x)).backward()
        own.step()
    d_x = 0.3**2 * (len(free) - 1)
    assert fair.lam.item() == pytest.approx(1 - 5 * 0.01 * (0.1 - d_x))


HEADS = {
    "trained with it": lambda encoder, head: [*encoder.parameters(), *head.parameters()],
    "not in the optimizer": lambda encoder, head: encoder.parameters(),
    "frozen": lambda encoder, head: [p.requires_grad_() for p in encoder.parameters() if head.requires_grad_(False)],
}


@pytest.mark.parametrize("head_is", HEADS)
@pytest.mark.parametrize("given", ["tensor", "dict", "leaf before"])
def test_lam_steps_with_an_encoder_before_the_model(head_is, given):
    """One step of lam for each of the optimizer, as with one batch; by hand for a search whose d_X is known."""
    x, lams = people(64), []
    for cuts in ([], [10, 30, 31]):
        torch.manual_seed(0)
        encoder, head = nn.Linear(D, D).double(), net()
        fair = regularizer(search=ends, bounds=None, lam_rule=gradient_rule(0.2))
        own = torch.optim.SGD(HEADS[head_is](encoder, head), lr=0.01)
        seen = []
        for _ in range(6):
            own.zero_grad()
            before = fair.lam.item()
            for part in x.tensor_split(cuts):
                z = encoder(part.clone().requires_grad_() if given == "leaf before" else part)
                called, z = ((lambda z, head=head: head(z)), {"z": z}) if given == "dict" else (head, z)
                (fair(called, z) * len(part) / len(x)).backward()
            own.step()
            seen.append(fair.lam.item() != before)
        assert all(seen)
        lams.append(fair.lam.item())
    assert lams[0] == pytest.approx(lams[1], abs=1e-6)


@pytest.mark.parametrize("kind", ["tensors of ones own", "functional_call"])
def test_lam_steps_with_weights_that_are_no_module(kind):
    """Three uneven batches are one step; new weights, in the place of old ones or in new tensors, are another."""
    x, module, lams = people(), net()[0], []
    for batches in ([slice(40)], [slice(25), slice(25, 36), slice(36, 40)]):
        weights = {name: (5 * p.detach()).requires_grad_() for name, p in module.named_parameters()}
        fair = regularizer(search=ends)
        for _ in range(5):
            if kind == "functional_call":
                weights = {name: (w.detach() * 1.1).requires_grad_() for name, w in weights.items()}
            else:
                for w in weights.values():
                    w.data *= 1.1
            for batch in batches:
                held = tuple(weights.values()) if kind != "functional_call" else weights
                model = (
                    (lambda z, held=held: torch.func.functional_call(module, held, (z,)))
                    if kind == "functional_call"
                    else (lambda z, held=held: F.linear(z, *held))
                )
                fair(model, x[batch])
        lams.append(fair.lam.item())
    assert abs(lams[0] - 0.5) > 0.01  # one step is .0054
    assert lams[0] == pytest.approx(lams[1], rel=1e-6)


def test_lam_can_be_found_for_a_model_that_is_not_trained():
    model, fair = net(), regularizer(search=ends, bounds=None, lam_rule=gradient_rule(0.5), eps=0.5)
    with torch.no_grad():
        for _ in range(3):
            fair(model, people())
    assert fair.lam.item() < 0.5 - 0.5 * 0.05 * 2


def test_lam_never_loses_its_digits():
    fair = regularizer(lam=0.123456)
    assert fair.half().lam.dtype == torch.float32
    assert fair.to(torch.bfloat16).lam.item() == pytest.approx(0.123456, abs=1e-7)
    assert fair.double().lam.dtype == torch.float64


@pytest.mark.parametrize("options", [{"eps": -0.1}, {"eps": float("nan")}, {"lam": -1.0}])
def test_bad_numbers_are_refused(options):
    with pytest.raises(ValueError, match="must be zero or positive"):
        regularizer(**options)


def test_a_rank_counts_as_much_as_it_has_rows(monkeypatch):
    """Gradients are averaged over two ranks: of eight rows this one has three, so that its mean counts 2 * 3 / 8."""
    regularizer = FairRegularizer(FairMetric([[1.0], [0.0]]), bounds=(-1.0, 1.0))
    monkeypatch.setattr(ranks, "world", lambda: 2)
    monkeypatch.setattr(ranks, "share_of", lambda n: ranks.Share(0, n, 8))
    result = SimpleNamespace(value=torch.tensor(2.0), h_x=torch.zeros(3, 2))
    monkeypatch.setattr(regularizer, "evaluate", lambda *given: result)
    assert regularizer(None, None).item() == 2.0 * 2 * 3 / 8
    assert regularizer.eval()(None, None).item() == 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": "0.1"}, "eps must be zero or positive"),
        ({"eps": None}, "eps must be zero or positive"),
        ({"eps": float("inf")}, "eps must be zero or positive"),
        ({"lam": "1"}, "lam must be zero or positive"),
        ({"bounds": "data"}, r"bounds must be None, a Box or a pair"),
        ({"bounds": 5}, r"bounds must be None, a Box or a pair"),
        ({"bounds": (0.0,)}, r"bounds must be a pair \(low, high\)"),
        ({"bounds": (None, 1.0)}, r"bounds must be a pair \(low, high\)"),
        ({"search": "fast"}, "search must be a function"),
        ({"lam_rule": 0.1}, "lam_rule must be a function"),
        ({"output_distance": "logits"}, "output_distance must be a function"),
    ],
)
def test_a_wrong_kind_of_setting_is_told_at_once(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        FairRegularizer(FairMetric(torch.eye(D)[:, :1]), **options)


def test_a_matrix_is_no_metric():
    with pytest.raises(TypeError, match="must be a FairMetric"):
        FairRegularizer(torch.eye(D))


@pytest.mark.parametrize("distance", [F.mse_loss, lambda a, b: (a - b) ** 2], ids=["one number", "one per logit"])
def test_an_output_distance_must_leave_the_rows_apart(distance):
    with pytest.raises(ValueError, match="one number for each row"):
        regularizer(output_distance=distance)(nn.Linear(D, 2).double(), people())


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_rows_that_are_no_numbers_are_counted(bad):
    x = people()
    x[3, 1] = bad
    fair = FairRegularizer(FairMetric(torch.eye(D)[:, :1]))
    with pytest.raises(ValueError, match=f"1 of {len(x)} rows hold NaN or infinite values, in 1 of {D} columns"):
        fair(nn.Linear(D, 2).double(), x)
    assert fair.lam == 1.0


@pytest.mark.parametrize("first", [nn.Identity(), nn.LayerNorm(3)], ids=["split", "whole"])
def test_a_part_of_the_rows_is_looked_at_as_if_alone(first):
    """The same value and gradient as of these rows alone, while h(x) is that of all."""
    torch.manual_seed(0)
    layers = [nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)]
    model = nn.Sequential(*([] if isinstance(first, nn.Identity) else [first]), *layers).double()
    x, part = torch.randn(9, 3, dtype=torch.float64), torch.tensor([1, 4, 6])
    found = []
    for people, rows in ((x, part), (x[part], None)):
        metric = FairMetric(torch.eye(3, dtype=torch.float64)[:, :1])
        fair = FairRegularizer(metric, generator=torch.Generator().manual_seed(1))
        seen = fair.evaluate(model, people, part=rows)
        found.append([seen.value.detach(), fair.lam, *torch.autograd.grad(seen.value, list(model.parameters()))])
        torch.testing.assert_close(seen.h_x, model(people))
    for one, other in zip(*found):
        torch.testing.assert_close(one, other)


@pytest.mark.filterwarnings("ignore")  # of torch about its old spectral_norm
@pytest.mark.parametrize("kind", ["dropout", "spectral norm"])
def test_hooks_that_follow_the_mode_are_no_unfairness_and_nothing_moves(kind):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(D, 8), nn.ReLU(), nn.Linear(8, 2)).double()
    if kind == "dropout":
        model[0].register_forward_hook(lambda module, args, output: F.dropout(output, 0.5, module.training))
    else:
        nn.utils.spectral_norm(model[0])
    model.eval()
    expected = regularizer()(model, people())
    model.train()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    for _ in range(2):
        torch.testing.assert_close(regularizer()(model, people()), expected)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


def test_lam_steps_with_every_look_at_other_weights_and_can_be_kept_still():
    """As docs/devices.md has it, of optimizers that call their closure several times in a step."""
    x, model = people(), net()
    lbfgs = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=5)
    for still in (False, True):
        fair, looks = regularizer(search=ends, lam=0.0, lam_rule=lambda lam, d_x, eps: lam + 1), []

        def closure(fair=fair, looks=looks):
            lbfgs.zero_grad()
            loss = model(x).square().mean() + fair(model, x)
            loss.backward()
            looks.append(loss.item())
            return loss

        for _ in range(3):
            fair.train(not still)
            lbfgs.step(closure)
            fair.train()
            if still:
                with torch.no_grad():
                    fair(model, x)
        assert len(looks) > 3
        assert fair.lam.item() == (3 if still else len(looks))


@pytest.mark.parametrize("d", [3, 10])
def test_the_value_is_a_lower_estimate_and_an_audit_finds_all(d):
    """One free column of a linear model: the supremum of |w (x' - x)|^2 is at the farther end of its range. A search
    that goes to one of the two ends finds 4/7 of it, E[u^2] of E[max(u, 1 - u)^2]."""
    torch.manual_seed(0)
    model, x, metric = nn.Sequential(nn.Linear(d, 2)), torch.rand(300, d), FairMetric(torch.eye(d)[:, :1])
    with torch.no_grad():
        model[0].weight[0] = -model[0].weight[1]  # logits that add up to a constant: no shift of all to be left out
    known = (torch.maximum(x[:, 0], 1 - x[:, 0]).square().mean() * model[0].weight[:, 0].square().mean()).item()
    for seed in range(3):
        fair = FairRegularizer(metric, eps=0.0, bounds=(0.0, 1.0), generator=torch.Generator().manual_seed(seed))
        assert 0.3 * known < fair(model, x).item() <= (1 + 1e-5) * known
        assert fair(model, x).item() == pytest.approx(4 / 7 * known, rel=0.2)
    found = audit(model, x, metric, eps=0.0, bounds=(0.0, 1.0))
    assert 0.98 * known <= found.r_low <= (1 + 1e-5) * known
