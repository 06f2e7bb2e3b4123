"""Sequences whose tokens move: beside the ordinary search where there is one token, and beside closed forms."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.functional import one_hot
from torch.utils.checkpoint import checkpoint

from evenhand import CandidateSearch, FairMetric, FairRegularizer, GradientSearch, Variations, gradient_rule
from evenhand.fair_metrics import per_token
from evenhand.search.ascent import NormalisedAscent, SignAscent

K = 6


class Sequence(nn.Module):
    """Attention over the tokens that are there, and a head on the mean of them."""

    def __init__(self, checkpointed=False):
        super().__init__()
        torch.manual_seed(0)
        self.embeddings = nn.Embedding(20, K)
        self.mix = nn.TransformerEncoderLayer(K, 2, 8, dropout=0.2, batch_first=True)
        self.head = nn.Linear(K, 3)
        self.checkpointed = checkpointed

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None):
        x = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        there = torch.ones(x.shape[:2], device=x.device) if attention_mask is None else attention_mask
        if self.checkpointed and self.training:
            x = checkpoint(self._mixed, x, there, use_reentrant=False)
        else:
            x = self._mixed(x, there)
        there = there[:, :, None].to(x.dtype)
        return self.head((x * there).sum(1) / there.sum(1))

    def _mixed(self, x, there):
        far = torch.zeros(len(x), 1, x.shape[1], x.shape[1]).masked_fill(there[:, None, None] == 0, -1e9)
        return self.mix(x, src_mask=far.expand(-1, 2, -1, -1).flatten(0, 1))


class Tagger(Sequence):
    """An output for each token."""

    def forward(self, input_ids, attention_mask):
        return self.head(self._mixed(self.embeddings(input_ids), attention_mask))


class Bag(nn.Module):
    """The tokens as they stand, no matter in which order, and whatever the mask says."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embeddings, self.head = nn.Embedding(20, K), nn.Linear(K, 2)

    def forward(self, input_ids, attention_mask):
        return self.head(self.embeddings(input_ids).sum(1))


LENGTHS = torch.tensor([3, 5, 1, 4])


def batch(padded=0, left=False):
    """Sequences of 1 to 5 tokens, padded to a length of 5 and more."""
    width = 5 + padded
    there = (torch.arange(width) < LENGTHS[:, None]).long()
    tokens = torch.zeros(4, width, dtype=torch.long)
    tokens[:, :5] = torch.randint(1, 20, (4, 5), generator=torch.Generator().manual_seed(1)) * there[:, :5]
    return {"input_ids": tokens.flip(1) if left else tokens, "attention_mask": there.flip(1) if left else there}


def one(kind="directions"):
    turned, _ = torch.linalg.qr(torch.randn(K, K, generator=torch.Generator().manual_seed(2)))
    if kind == "directions":
        return FairMetric(turned[:, :2])
    return FairMetric(sigma=turned[:, 2:] @ turned[:, 2:].T * 3) if kind == "sigma" else FairMetric.euclidean(K)


def regularizer(metric=None, **options):
    options = {
        "eps": 0.1, "lam": 0.05, "at": "embeddings", "generator": torch.Generator().manual_seed(3),
        "search": GradientSearch(full_steps=2),
    } | options  # fmt: skip
    return FairRegularizer(per_token(one()) if metric is None else metric, **options)


SEARCHES = [
    GradientSearch(full_steps=3),
    GradientSearch(full_steps=2, line_search=False, ascent=SignAscent, full_step=0.05),
    GradientSearch(subspace_steps=4, full_steps=0, reach=0.3, ascent=NormalisedAscent),
    GradientSearch(starts=2),
]


@pytest.mark.parametrize("search", SEARCHES, ids=["line", "steps", "reach", "starts"])
@pytest.mark.parametrize("kind", ["directions", "sigma", "euclidean"])
@pytest.mark.parametrize("eps", [0.0, 0.2])
def test_one_token_is_the_ordinary_search(search, kind, eps):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(K, 8), nn.Tanh(), nn.Linear(8, 3))
    x = torch.randn(7, 1, K)
    found = []
    for metric in (one(kind), per_token(one(kind))):
        fair = regularizer(metric, search=search, at=None, eps=eps)
        found.append((fair.evaluate(model, x), fair.lam))
    (ordinary, lam), (ours, our_lam) = found
    torch.testing.assert_close(ours.found.x_worst, ordinary.found.x_worst, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.found.d_x, ordinary.found.d_x, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.found.gain, ordinary.found.gain, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.value, ordinary.value, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(our_lam, lam)


@pytest.mark.parametrize("search", SEARCHES, ids=["line", "steps", "reach", "starts"])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("kind", [Sequence, Tagger])
def test_padding_changes_nothing(search, left, kind):
    results = []
    for padded in (0, 4):
        model, fair = kind(), regularizer(search=search)
        result = fair.evaluate(model, batch(padded, left))
        result.value.backward()
        gradients = torch.cat([p.grad.ravel() for p in model.parameters()])
        results.append((result.value.detach(), result.found.d_x, result.found.gain, gradients, fair.lam))
    for ours, padded in zip(*results):
        torch.testing.assert_close(ours, padded, rtol=1e-4, atol=1e-6)
    assert float(results[0][3].norm()) > 0
    assert float(results[0][2].min()) > 0


def test_the_outputs_of_tokens_that_are_there_are_what_is_judged():
    """Beside the mean over these, sequence by sequence, also where only some of the people are looked at."""
    model, inputs, fair = Tagger().eval(), batch(2), regularizer(lam=0.0).eval()
    result = fair.evaluate(model, inputs)
    x_worst = result.found.x_worst.reshape(4, 7, K)
    there = inputs["attention_mask"]
    with torch.no_grad():
        h = [model.head(model._mixed(x, there)) for x in (model.embeddings(inputs["input_ids"]), x_worst)]
    each = torch.stack([(a - b)[:n].square().mean() for a, b, n in zip(*h, LENGTHS)])
    torch.testing.assert_close(result.d_y.detach(), each.mean())
    torch.testing.assert_close(result.found.gain, each)
    some = [torch.tensor([0]), torch.tensor([2, 3])]
    parts = fair.distances(h[0], [h[1][rows] for rows in some], some, there == 1)
    torch.testing.assert_close(torch.cat(parts), each[[0, 2, 3]])


@pytest.mark.parametrize("how", ["at", "vary", "place", "read all the same"])
def test_what_is_not_there_stays_to_the_bit_and_the_rest_moves(how):
    model, inputs = Bag() if how == "read all the same" else Sequence(), batch(3)
    x = model.embeddings(inputs["input_ids"]).detach()
    there = inputs["attention_mask"].bool()
    fair = regularizer()
    if how == "vary":
        fair, inputs = regularizer(at=None, vary="inputs_embeds"), {**inputs, "inputs_embeds": x}
        del inputs["input_ids"]
    if how == "place":
        fair, inputs = regularizer(per_token(one(), mask=1)), tuple(inputs.values())
    found = fair.evaluate(model, inputs).found
    x_worst = found.x_worst.view_as(x)
    assert torch.equal(x_worst[~there], x[~there])
    assert (x_worst != x).any(2)[there].all()
    torch.testing.assert_close(found.d_x, per_token(one())(x, x_worst), rtol=1e-4, atol=1e-5)
    assert float(found.d_x.max()) > 0


def test_free_moves_alone_cost_nothing_and_follow_each_token_s_directions():
    model, inputs = Sequence(), batch()
    found = regularizer(eps=0.0, search=GradientSearch(full_steps=5)).evaluate(model, inputs).found
    moves = found.x_worst.view(4, 5, K) - model.embeddings(inputs["input_ids"]).detach()
    assert found.d_x.tolist() == [0.0] * 4
    assert float(one().project(moves.view(-1, K)).abs().max()) < 1e-5
    assert not torch.allclose(moves[1, 0], moves[1, 1], atol=1e-3)  # each by itself


def test_r_of_a_linear_model_of_the_sum_is_a_closed_form():
    """h = sum over the m tokens of w . x_t, d_Y = (h - h')^2, d_X = sum over the tokens of |v_t|^2: at lam > m |w|^2 no
    move pays and the value is eps * lam; one step along the slope, w for every token, gains its length squared times
    m |w|^2; free moves u_t in [-r, r] along the axes gain up to (m r |w|_1)^2."""
    w = torch.tensor([[0.5, -0.3, 0.2, 0.0, 0.0, 0.4]])

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(w.clone())

        def forward(self, x, attention_mask):
            return (x * attention_mask[:, :, None]).sum(1) @ self.w.T

    mask = batch()["attention_mask"]
    x = {"x": torch.randn(4, 5, K), "attention_mask": mask}
    squares = LENGTHS * w.square().sum()

    dear = regularizer(per_token(FairMetric.euclidean(K)), at=None, vary="x", lam=float(squares.max()) * 1.01, eps=0.3)
    result = dear.eval().evaluate(Sum(), x)
    torch.testing.assert_close(result.value, dear.lam * 0.3)

    axes = per_token(FairMetric(torch.eye(K)[:, :2]))
    reach = GradientSearch(reach=0.7, subspace_steps=20, full_steps=0)
    free = regularizer(axes, at=None, vary="x", eps=0.0, search=reach)
    torch.testing.assert_close(free.evaluate(Sum(), x).found.gain, (LENGTHS * 0.7 * 0.8).square())

    step = GradientSearch(full_steps=1, full_step=0.2, noise=0.01)
    cheap = regularizer(per_token(FairMetric.euclidean(K)), at=None, vary="x", lam=0.0, eps=0.3, search=step)
    long = 0.2 * (LENGTHS * K).sqrt()  # one step along the slope, which is w for every token that is there
    found = cheap.eval().evaluate(Sum(), x).found
    torch.testing.assert_close(found.gain, (long * squares.sqrt()).square(), rtol=0.05, atol=0.0)
    torch.testing.assert_close(found.d_x, long.square(), rtol=0.05, atol=0.0)


def test_it_never_ends_below_its_start():
    for lam in (0.0, 1.0, 100.0):
        found = regularizer(lam=lam).eval().evaluate(Sequence(), batch()).found
        assert (found.gain - lam * found.d_x >= 0).all()


def test_the_gradient_is_that_of_step_3_and_reaches_what_lies_before():
    model, inputs = Sequence().eval(), batch(2)
    result = regularizer().eval().evaluate(model, inputs)
    result.value.backward()
    frozen = copy.deepcopy(model)
    frozen.zero_grad()
    x = frozen.embeddings(inputs["input_ids"])
    moved = x + (result.found.x_worst.view_as(x) - x).detach()
    h, h_worst = (frozen(inputs_embeds=e, attention_mask=inputs["attention_mask"]) for e in (x, moved))
    (h - h_worst).square().mean(1).mean().backward()
    for ours, autograd in zip(model.parameters(), frozen.parameters()):
        torch.testing.assert_close(ours.grad, autograd.grad, rtol=1e-4, atol=1e-6)


def test_under_autocast_and_gradient_checkpointing():
    exact, model = regularizer().evaluate(Sequence(), batch()), Sequence(checkpointed=True)
    mode = {name: module.training for name, module in model.named_modules()}
    fair = regularizer()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = fair.evaluate(model, batch(2))
        loss = model(**batch(2)).float().square().mean() + result.value
    loss.backward()
    assert result.found.x_worst.dtype == result.value.dtype == torch.float32
    torch.testing.assert_close(result.value, exact.value, rtol=0.3, atol=0.0)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    assert {name: module.training for name, module in model.named_modules()} == mode


def test_half_precision_embeddings_are_moved_in_float32():
    model = Sequence().bfloat16()
    found = regularizer().evaluate(model, batch()).found
    assert found.x_worst.dtype == torch.float32


def test_lam_follows_the_mean_distance_once_a_step_for_batches_of_any_length():
    model, fair = Sequence(), regularizer(lam_rule=gradient_rule(0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    first, second = fair.evaluate(model, batch()), fair.evaluate(model, batch(3))  # one step
    mean = (first.d_x + second.d_x) / 2
    torch.testing.assert_close(fair.lam, torch.tensor(0.05) - 0.5 * (0.1 - mean))
    second.value.backward()
    optimizer.step()
    before = fair.lam.clone()
    third = fair.evaluate(model, batch())
    torch.testing.assert_close(fair.lam, (before - 0.5 * (0.1 - third.d_x)).clamp(min=0))


def test_nobody_and_rows_without_a_token():
    empty = {"input_ids": torch.zeros(0, 4, dtype=torch.long), "attention_mask": torch.zeros(0, 4)}
    assert float(regularizer().evaluate(Bag(), empty).value.detach()) == pytest.approx(0.05 * 0.1)
    x = {"x": torch.randn(2, 3, K), "attention_mask": torch.tensor([[1, 1, 0], [0, 0, 0]])}
    model = lambda x, attention_mask: x.sum(1)[:, :2]  # noqa: E731
    found = regularizer(at=None, vary="x").evaluate(model, x).found
    assert found.gain[1] == found.d_x[1] == 0
    assert found.gain[0] > 0


def test_a_mask_that_is_none_is_said():
    model, inputs = Sequence(), batch()
    for mask in ("padding", None):
        fair = regularizer(per_token(one(), mask=mask))
        if mask is None:
            assert fair.evaluate(model, inputs).found.x_worst.shape == (4, 5 * K)
            continue
        with pytest.raises(ValueError, match="of which none is the mask 'padding'"):
            fair(model, inputs)
    for mask in (one_hot(inputs["attention_mask"]), torch.where(inputs["attention_mask"] == 1, 0.0, -1e9)):
        with pytest.raises(ValueError, match="must say by 1 and 0 which of the 5 tokens"):
            regularizer()(Bag(), {**inputs, "attention_mask": mask})


def test_other_searches_and_bounds_are_refused():
    with pytest.raises(TypeError, match="the search is a GradientSearch, got CandidateSearch"):
        regularizer(search=CandidateSearch(Variations(torch.zeros(1, 2, 6).numpy(), rows=[0])))
    with pytest.raises(ValueError, match="these have no bounds"):
        regularizer(bounds=(0.0, 1.0))
    with pytest.raises(ValueError, match=r"one per token, of sequences \(n, T, 6\), but x has shape \(4, 3\)"):
        regularizer(at="head")(Sequence(), batch())
    assert regularizer().of_free()(Sequence(), batch()) > 0


def test_a_part_of_the_people():
    model, x = nn.Sequential(nn.Flatten(), nn.Linear(3 * K, 2)), torch.randn(6, 3, K)
    fair, part = regularizer(at=None), torch.tensor([4, 1])
    result = fair.eval().evaluate(model, x, part=part)
    assert result.h_x.shape == (6, 2)
    alone = regularizer(at=None).eval().evaluate(model, x[part])
    torch.testing.assert_close(result.found.x_worst, alone.found.x_worst)
