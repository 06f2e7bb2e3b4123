"""The bound of a network behind the interface that certificates use: true of every point tried, row by row."""

import pytest
import torch

from bounds.nets import other_points, random_layers, random_points, random_problem, with_activations
from evenhand.bounds.activations import GELU, IDENTITY, RELU, SIGMOID, SILU, TANH
from evenhand.bounds.layers import forward
from evenhand.bounds.network import _Chooser, bound_network
from evenhand.bounds.normal import normalised
from evenhand.headline import stands

EPS = 0.05


def bound_of(outputs, k=1, seed=0, discrete=True, kinds=()):
    sizes = (4, 8, 6, outputs) if kinds else (4, 8, outputs)
    problem = random_problem(sizes, k=k, seed=seed, discrete=discrete)
    logits = random_layers(sizes, seed)
    if kinds:
        logits = with_activations(logits, *kinds)
        problem = problem.with_layers(logits)
    tuning = random_points(problem, 12, 50)
    return problem, logits, bound_network(problem, logits, tuning, EPS, n=100, alpha=0.025, steps=20, rounds=3)


@pytest.mark.parametrize(
    ("outputs", "kinds"), [(1, ()), (2, ()), (3, ()), (1, (GELU, RELU)), (2, (TANH,)), (3, (SIGMOID, SILU, IDENTITY))]
)
def test_nothing_tried_is_above_the_bound(outputs, kinds):
    problem, logits, bound = bound_of(outputs, kinds=kinds)
    x = random_points(problem, 20, 1)
    x_other = other_points(problem, x, 200, 2)
    wide = x[:, None].expand_as(x_other)
    d_y = (problem.f(wide) - problem.f(x_other)).square().sum(-1)
    d_x = problem.d_x(x_other - wide)
    found = bound.upper(x)
    assert ((d_y - bound.lam * d_x).amax(1) <= found.upper + 1e-9).all()
    assert (found.lower <= found.upper).all()
    torch.testing.assert_close(problem.gain(x, found.witness, bound.lam).clamp(min=0), found.lower)
    assert (found.upper <= bound.largest + 1e-9).all()
    near = d_x <= EPS
    assert near.sum() > 100
    assert (torch.where(near, d_y, torch.zeros(())).amax(1) <= bound.near(x, EPS) + 1e-9).all()
    assert (d_y[near] <= bound.everywhere + 1e-9).all()
    score, score_other = margins(logits, x, x_other)
    low, high = bound.score_range(x, EPS)
    assert (torch.where(near, score_other, score[:, None]) >= low[:, None] - 1e-9).all()
    assert (torch.where(near, score_other, score[:, None]) <= high[:, None] + 1e-9).all()
    changed = ((score_other > 0) != (score > 0)[:, None]) & near
    assert not (changed.any(1) & stands(forward(logits, x), low, high, 0.0)).any()


def margins(logits, x, x_other):
    """The score of each x and of each x' as the protocol defines it."""
    h, h_other = forward(logits, x), forward(logits, x_other)
    if h.shape[1] <= 2:
        sign = 1.0 if h.shape[1] == 2 else 0.0
        return h[:, -1] - sign * h[:, 0], h_other[..., -1] - sign * h_other[..., 0]
    own = h.argmax(1)
    others = torch.full_like(h, 0.0).scatter(1, own[:, None], -torch.inf)
    first = h.gather(1, own[:, None])[:, 0] - (h + others).amax(1)
    index = own[:, None, None].expand(-1, h_other.shape[1], 1)
    return first, h_other.gather(2, index)[..., 0] - (h_other + others[:, None]).amax(2)


def test_some_decisions_are_proved_and_none_at_a_huge_eps():
    problem, logits, bound = bound_of(2, k=0, discrete=False)
    x = random_points(problem, 40, 3)
    h = forward(logits, x)
    assert stands(h, *bound.score_range(x, 1e-6), 0.0).sum() > 0
    assert stands(h, *bound.score_range(x, 1e6), 0.0).sum() == 0


def test_a_row_is_bounded_without_regard_to_the_others():
    problem, _, bound = bound_of(2)
    x = random_points(problem, 30, 4)
    together, alone = bound.upper(x), bound.upper(x[7:8])
    torch.testing.assert_close(together.upper[7:8], alone.upper)
    torch.testing.assert_close(bound.near(x, EPS)[7:8], bound.near(x[7:8], EPS))


def test_a_lam_that_suits_only_those_it_was_tried_on_is_given_up():
    """The bound of the first sixteen is 1 at any lam, that of the others 1000 below lam = 10 and 1 from there on."""

    class Tail:
        def upper(self, x, lam, reached=None, most=None):
            return torch.where(x[:, 0] < 16, 1.0, 1000.0 if lam < 10 else 1.0).double(), x, None

        def quick(self, x, lam):
            return self.upper(x, lam)[0]

    problem = random_problem((2, 3, 1), k=0, seed=0, discrete=False)
    x = torch.arange(80.0, dtype=torch.float64)[:, None].expand(80, 2)
    nothing = torch.zeros(80, dtype=torch.float64)
    chooser = _Chooser(normalised(problem), x, 0.01, 1.0, lambda lam: nothing, None)
    chooser._add(2.0, torch.ones(16, dtype=torch.float64), None, True)
    chooser.look_again(Tail())
    best = min(chooser.trials, key=lambda trial: trial.objective)
    assert 10 <= best.lam <= 12
    assert best.objective == pytest.approx(1 + 0.01 * best.lam)


class Hard:
    """A local bound that is smallest at lam = 1.2 and for which each person takes all the work there is."""

    work = 1000

    def __init__(self):
        self.asked = []

    def upper(self, x, lam, reached=None, most=None):
        self.asked.append((lam, most))
        used = torch.full((len(x),), 1000 if most is None else min(1000, most))
        return torch.full((len(x),), 1 + (lam - 1.2) ** 2, dtype=torch.float64), x, used


def a_chooser():
    problem = random_problem((2, 3, 1), k=0, seed=0, discrete=False)
    nothing = torch.zeros(80, dtype=torch.float64)
    return _Chooser(normalised(problem), random_points(problem, 80, 0), 1e-6, 1.0, lambda lam: nothing, None)


def test_everybody_is_given_less_where_everybody_would_take_all():
    chooser, hard = a_chooser(), Hard()
    chooser._try(hard, 2.0)
    chooser._try(hard, 2.0)
    assert [most for _, most in hard.asked] == [None, 400]
    assert chooser.most == 400


def test_where_there_is_no_time_the_first_lam_is_taken():
    chooser, hard = a_chooser(), Hard()
    chooser.over = lambda: True
    assert not chooser._upwards(hard, 1.0, (1.05, 1.12, 1.25, 1.4), 1.0)
    assert len(hard.asked) == 1


@pytest.mark.parametrize("sizes", [(4, 8, 1), (4, 8, 2), (4, 6, 6, 2)])
def test_a_bound_that_was_chosen_in_no_time_holds(sizes):
    problem = random_problem(sizes, k=1, seed=0)
    x = random_points(problem, 12, 50)
    bound = bound_network(problem, problem.layers, x, EPS, n=100, alpha=0.025, steps=20, rounds=3, over=lambda: True)
    points = other_points(problem, x, 300, 2)
    assert (problem.gain(x[:, None], points, bound.lam).amax(1) <= bound.upper(x).upper + 1e-12).all()
    assert problem.gain(x[:, None], points, bound.lam).max() <= bound.largest + 1e-12


def test_lam_rises_until_the_objective_does():
    chooser, hard = a_chooser(), Hard()
    assert chooser._upwards(hard, 1.0, (1.05, 1.12, 1.25, 1.4), 1.0)
    assert [lam for lam, _ in hard.asked] == [1.05, 1.12, 1.25, 1.4]
    chooser, hard = a_chooser(), Hard()
    assert not chooser._upwards(hard, 1.2, (1.0, 1.5, 2.0), 1.0)
    assert len(hard.asked) == 2


def test_a_wide_network_has_the_dual_too_unless_shells_are_near_what_is_reached(monkeypatch):
    """Shells alone may lie close to what is reached at their own large lam, and far above R(h)."""
    sizes = (8, 40, 2)
    problem = random_problem(sizes, k=2, seed=4, discrete=False)
    tuning, fresh = random_points(problem, 24, 50), random_points(problem, 12, 51)
    lams = [0.02 * 1.6**i for i in range(16)]
    points = other_points(problem, tuning, 3000, 2)

    def reached(lam):
        return problem.gain(tuning[:, None], points, lam).amax(1).clamp(min=0)

    best = min(lams, key=lambda lam: lam * EPS + float(reached(lam).mean()))

    def objective():
        logits = random_layers(sizes, 4)
        bound = bound_network(
            problem, logits, tuning, EPS, n=100, alpha=0.025, steps=80, rounds=3, lam_at_least=best, reached=reached
        )
        return bound.lam * EPS + float(bound.upper(fresh).upper.mean())

    without = objective()
    monkeypatch.setattr("evenhand.bounds.fibre.LARGE", 0)
    assert objective() < 1.1 * without
    monkeypatch.setattr("evenhand.bounds.network.CLOSE_WIDE", 1e9)  # as if shells were always near enough
    assert objective() > 1.5 * without


def test_of_shells_and_dual_the_smaller_counts(monkeypatch):
    sizes = (4, 5, 5, 1)
    layers = with_activations(random_layers(sizes, 3), GELU)
    problem = random_problem(sizes, k=0, seed=3, discrete=False).with_layers(layers)
    tuning = random_points(problem, 6, 50)
    points = other_points(problem, tuning, 400, 2)

    def reached(lam):
        return problem.gain(tuning[:, None], points, lam).amax(1).clamp(min=0)

    lowest = min((0.02 * 1.6**i for i in range(20)), key=lambda lam: lam * EPS + float(reached(lam).mean()))

    def objective():
        bound = bound_network(
            problem, layers, tuning, EPS, n=100, alpha=0.025, steps=20, rounds=2, lam_at_least=lowest, reached=reached
        )
        found = bound.upper(tuning)
        assert (found.upper >= reached(bound.lam) - 1e-9).all()
        return bound.lam * EPS + float(found.upper.mean())

    both = objective()
    with monkeypatch.context() as patch:
        patch.setattr("evenhand.bounds.network.affordable_shells", lambda problem: False)
        dual = objective()
    with monkeypatch.context() as patch:
        patch.setattr("evenhand.bounds.network._tuned_dual", lambda *_: None)
        shells = objective()
    assert both <= 1.02 * min(dual, shells)
    assert shells < 0.95 * dual


def test_another_kind_of_bound_is_tried_where_only_a_large_lam_does():
    """As close as can be to what is reached at its own lam, 4, and three times above what R(h) is at lam = 1."""
    chooser = a_chooser()
    chooser.eps = 1.0
    chooser._add(4.0, torch.zeros(8, dtype=torch.float64), None, True)
    assert chooser.close()
    assert not chooser.done(wide=False)
    assert not chooser.done(wide=True)
    chooser._add(1.04, torch.zeros(8, dtype=torch.float64), None, True)
    assert chooser.done(wide=False)
    assert chooser.done(wide=True)


def test_every_lam_that_was_tried_is_told_and_a_limit_that_ends_there_loses_nothing():
    problem, logits = random_problem((4, 8, 2), seed=0), random_layers((4, 8, 2), 0)
    tuning, told = random_points(problem, 12, 50), []

    def tell(text):
        told.append(text)
        if text.startswith("tried"):
            raise KeyboardInterrupt  # as a limit of time does

    def bound(progress, over=lambda: False):
        return bound_network(
            problem, logits, tuning, EPS, n=100, alpha=0.025, steps=20, rounds=3, progress=progress, over=over
        )

    assert bound(tell).lam == bound(None).lam
    tried = [text for text in told if text.startswith("tried lam = ")]
    assert len(tried) > 1
    told.clear()
    assert bound(tell, lambda: True).lam > 0
    assert len([text for text in told if text.startswith("tried")]) < len(tried)
