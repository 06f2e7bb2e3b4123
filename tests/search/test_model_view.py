"""Any input and any output, as rows of people; the model itself is left alone."""

import copy
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from evenhand.fair_metrics import FairMetric
from evenhand.output_distances import total_variation
from evenhand.regularizer import FairRegularizer
from evenhand.search import DistanceGain, GradientSearch
from evenhand.search.model_view import ModelView
from evenhand.search.worst_cases import WorstCases


def seeded():
    return torch.Generator().manual_seed(1)


def shift(model, gain, x, fair_metric, lam, bounds=None, generator=None, rows=None):
    """A fixed move: what is made of it can be written down."""
    x_worst = x + 0.3
    with torch.no_grad():
        return WorstCases(x_worst, fair_metric(x, x_worst), gain(model(x_worst)))


def euclidean(d):
    return FairMetric.euclidean(d, torch.float64)


class Picture(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Dropout(0.5), nn.Flatten())
        self.head = nn.Linear(3 * 2 * 2, 3)

    def forward(self, x):
        return self.head(self.features(x))


class Sentence(nn.Module):
    """Tokens or their embeddings in, what transformers give out: an object with logits."""

    def __init__(self, per_token=False):
        super().__init__()
        self.embedding, self.body, self.head = nn.Embedding(11, 4), nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)
        self.per_token = per_token

    def forward(self, tokens=None, mask=None, inputs_embeds=None):
        x = self.embedding(tokens) if inputs_embeds is None else inputs_embeds
        hidden, _ = self.body(x if mask is None else x * mask[:, :, None])
        logits = self.head(hidden if self.per_token else hidden[:, -1])
        return type("Outputs", (), {"logits": logits})()


def made(kind, *args):
    torch.manual_seed(0)
    return kind(*args).double()


TOKENS = torch.randint(11, (6, 5), generator=torch.Generator().manual_seed(0))


def test_pictures_are_flattened():
    model, x = made(Picture).train(), torch.rand(6, 1, 4, 4, dtype=torch.float64)
    result = FairRegularizer(euclidean(16), search=shift).evaluate(model, x)
    still = copy.deepcopy(model).eval()
    expected = (still(x) - still(x + 0.3)).square().mean(1)
    torch.testing.assert_close(result.d_y, expected.mean())
    torch.testing.assert_close(result.found.d_x, torch.full((6,), 16 * 0.09, dtype=torch.float64))
    found = FairRegularizer(euclidean(16), lam=1e-3, bounds=(0.0, 1.0)).evaluate(model, x).found
    assert (found.gain > 0).any()
    assert model.training


def test_a_dict_of_inputs_of_which_one_moves():
    model, mask = made(Sentence), torch.ones(6, 5, dtype=torch.float64)
    embedded = model.embedding(TOKENS).detach()
    expected = (model(inputs_embeds=embedded).logits - model(inputs_embeds=embedded + 0.3).logits).square().mean()
    fair = FairRegularizer(euclidean(20), search=shift, vary="inputs_embeds")
    torch.testing.assert_close(fair.evaluate(model, {"inputs_embeds": embedded, "mask": mask}).d_y, expected)
    alone = FairRegularizer(euclidean(20), search=shift)
    torch.testing.assert_close(alone.evaluate(model, {"inputs_embeds": embedded}).d_y, expected)
    places = FairRegularizer(euclidean(20), search=shift, vary=2)
    torch.testing.assert_close(places.evaluate(model, (None, mask, embedded)).d_y, expected)
    with pytest.raises(ValueError, match="say which moves with vary="):
        alone(model, {"inputs_embeds": embedded, "mask": mask})
    with pytest.raises(ValueError, match="vary='embeds' is not among the tensors"):
        FairRegularizer(euclidean(20), vary="embeds")(model, {"inputs_embeds": embedded})
    with pytest.raises(TypeError, match=r"(?s)whole numbers such as tokens.*inputs_embeds.*at="):
        alone(model, TOKENS)


def test_at_a_layer_whose_output_moves_gradients_reach_what_lies_before():
    model = made(Sentence)
    fair = FairRegularizer(euclidean(20), search=shift, at="embedding")
    result = fair.evaluate(model, {"tokens": TOKENS})
    result.d_y.backward()
    twin = made(Sentence)
    embedded = twin.embedding(TOKENS)
    d_y = (twin(inputs_embeds=embedded).logits - twin(inputs_embeds=embedded + 0.3).logits).square().mean()
    d_y.backward()
    torch.testing.assert_close(result.d_y, d_y)
    for ours, autograd in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(ours.grad, autograd.grad)
    assert type(model.embedding) is nn.Embedding
    with pytest.raises(ValueError, match=r"at='embeding' does not name a layer.*'embedding'"):
        FairRegularizer(euclidean(20), at="embeding")(model, TOKENS)


def test_at_the_features_of_pictures_agrees_with_the_head_alone():
    model, x = made(Picture).train(), torch.rand(6, 1, 4, 4, dtype=torch.float64)
    metric = FairMetric(torch.eye(12, dtype=torch.float64)[:, :2])
    inside = FairRegularizer(metric, at="features", generator=seeded()).evaluate(model, x)
    features = copy.deepcopy(model).eval().features(x).detach()
    outside = FairRegularizer(metric, generator=seeded()).evaluate(model.head, features)
    torch.testing.assert_close(inside.value, outside.value)
    torch.testing.assert_close(inside.found.x_worst, outside.found.x_worst)


def test_an_output_for_each_token_and_outputs_of_ones_own():
    model, embedded = made(Sentence, True), torch.randn(6, 5, 4, dtype=torch.float64)
    h, h_worst = (model(inputs_embeds=embedded + move).logits for move in (0.0, 0.3))
    for distance in (None, total_variation):
        options = {} if distance is None else {"output_distance": distance}
        fair = FairRegularizer(euclidean(20), search=shift, vary="inputs_embeds", **options)
        expected = (h - h_worst).square().mean() if distance is None else total_variation(h, h_worst).mean()
        torch.testing.assert_close(fair.evaluate(model, {"inputs_embeds": embedded}).d_y, expected)
    one = FairRegularizer(euclidean(20), search=shift, output=lambda o: o.logits[:, 0, :2])
    expected = (h - h_worst)[:, 0, :2].square().mean()
    torch.testing.assert_close(one.evaluate(model, {"inputs_embeds": embedded}).d_y, expected)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda x: x.argmax(1), TypeError, r"is one of torch\.int64"),
        (lambda x: [x], TypeError, r"is a list; .*output=lambda o: o\.logits"),
        (lambda x: x.mean(), ValueError, "for 6 rows; it must give each its own"),
    ],
)
def test_outputs_that_are_none_are_named(model, error, message):
    with pytest.raises(error, match=message):
        FairRegularizer(euclidean(3))(model, torch.rand(6, 3, dtype=torch.float64))


def test_output_is_taken_also_on_the_fast_path():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4)).double()
    x, metric = torch.rand(20, 3, dtype=torch.float64), FairMetric(torch.eye(3, dtype=torch.float64)[:, :1])
    results = [
        FairRegularizer(
            metric, generator=seeded(), output=lambda o: o[:, :2], search=GradientSearch(fast=fast), lam=0.1
        ).evaluate(model, x)
        for fast in (True, False)
    ]
    torch.testing.assert_close(results[0].found.x_worst, results[1].found.x_worst)
    expected = (model(x) - model(results[0].found.x_worst))[:, :2].square().mean()
    torch.testing.assert_close(results[0].d_y, expected)


class Checkpointed(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Dropout(0.5)), nn.Linear(16, 2)
        self.options = options

    def forward(self, x):
        return self.head(checkpoint(self.body, x, **self.options) if self.options else self.body(x))


class Padded(nn.Module):
    """A transformer of torch's own; what it gives for padded tokens counts in the mean."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 4)
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(4, 2)

    def forward(self, x, padded):
        return self.head(self.body(self.embed(x), src_key_padding_mask=padded)).mean(1)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("at", [None, "embed"])
@pytest.mark.parametrize("way", ["frozen", "no_grad", "inference_mode", "eval mode"])
def test_what_a_search_gained_is_what_the_regularizer_says(way, at):
    model, x = made(Padded), torch.rand(6, 5, 4, dtype=torch.float64, generator=seeded())
    people = {"x": x, "padded": (torch.arange(5) > 2) & (torch.arange(6) % 2 == 0)[:, None]}
    look = {"vary": "x"} if at is None else {"at": at}

    def evaluated():
        return FairRegularizer(euclidean(20), 0.1, (-9.0, 9.0), generator=seeded(), **look).evaluate(model, people)

    known = evaluated()
    torch.testing.assert_close(known.d_y.detach(), known.found.gain.mean())
    model.requires_grad_(way in ("no_grad", "inference_mode")).train(way != "eval mode")
    with {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}.get(way, torch.enable_grad)():
        found = evaluated()
    torch.testing.assert_close(found.found.gain, known.found.gain)
    torch.testing.assert_close(found.d_y.detach(), known.d_y.detach())


def test_checkpointing_runs_the_same_model_again():
    """The second run happens in backward, long after the search: dropout must still be off there."""
    model, x = made(Checkpointed).train(), torch.rand(20, 3, dtype=torch.float64)
    metric, gradients = FairMetric(torch.eye(3, dtype=torch.float64)[:, :1]), []
    for options in ({"use_reentrant": False}, {}):
        model.options = options
        model.zero_grad()
        FairRegularizer(metric, generator=seeded(), lam=0.1)(model, x).backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for ours, plain in zip(*gradients):
        torch.testing.assert_close(ours, plain)
    model.options = {"use_reentrant": True}  # the old kind allows no gradient but that of everything
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        FairRegularizer(metric)(model, x.requires_grad_(True))


@pytest.mark.parametrize("at", ["body", "body.2", "head"])
def test_at_a_checkpointed_block_its_end_or_behind_it(at):
    x, gradients = torch.rand(20, 3, dtype=torch.float64), []
    metric = FairMetric(torch.eye(2 if at == "head" else 16, dtype=torch.float64)[:, :1])
    for options in ({}, {"use_reentrant": False}):
        model = made(Checkpointed).train()
        model.options = options
        FairRegularizer(metric, generator=seeded(), lam=0.1, at=at)(model, x).backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for ours, plain in zip(*gradients):
        torch.testing.assert_close(ours, plain)


@pytest.mark.parametrize("at", ["body.0", "body.1"])
def test_at_a_layer_inside_a_checkpointed_block_there_is_a_word(at):
    """When the block runs again the layer would give its own output. Where it keeps nothing for the backward pass, as
    dropout in eval mode does, torch would not notice."""
    model = made(Checkpointed).train()
    model.body, model.options = nn.Sequential(model.body[0], nn.Dropout(0.5), nn.Tanh()), {"use_reentrant": False}
    metric = FairMetric(torch.eye(16, dtype=torch.float64)[:, :1])
    for _ in range(2):
        with pytest.raises(ValueError, match="name a layer outside, or the block"):
            FairRegularizer(metric, at=at)(model, torch.rand(20, 3, dtype=torch.float64))


def test_double_backward():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double()
    x, metric = torch.rand(20, 3, dtype=torch.float64), FairMetric(torch.eye(3, dtype=torch.float64)[:, :1])
    seconds = []
    for fast in (True, False):
        fair = FairRegularizer(metric, generator=seeded(), search=GradientSearch(fast=fast), lam=0.1)
        slopes = torch.autograd.grad(fair(model, x), list(model.parameters()), create_graph=True)
        penalty = sum(slope.square().sum() for slope in slopes)
        seconds.append(torch.autograd.grad(penalty, list(model.parameters()), allow_unused=True))
    for fast, plain in zip(*seconds):
        assert (fast is None) == (plain is None)
        if fast is not None:
            torch.testing.assert_close(fast, plain, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch about its own past
def test_compiled_models_compiled_steps_and_scripted_models():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    compiled = torch.compile(model, backend="eager")
    x, metric = torch.rand(20, 3), FairMetric(torch.eye(3)[:, :1])
    fair = [FairRegularizer(metric, generator=seeded()) for _ in range(4)]
    step = torch.compile(lambda z: 2 * fair[2](model, z), backend="eager")
    scripted = torch.jit.script(copy.deepcopy(model))
    values = [fair[0](model, x), fair[1](compiled, x), step(x) / 2, fair[3](scripted, x)]
    for value in values[1:]:
        torch.testing.assert_close(value, values[0])
    assert scripted.training


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch about its own past
def test_a_module_that_compiled_itself_is_looked_at_uncompiled():
    """``module.compile()`` keeps the compiled call in the module, which the twin must not call."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    x, metric = torch.rand(20, 3), FairMetric(torch.eye(3)[:, :1])
    value = FairRegularizer(metric, generator=seeded())(model, x)
    model.compile(backend="eager")
    torch.testing.assert_close(FairRegularizer(metric, generator=seeded())(model, x), value)
    assert model[1].num_batches_tracked == 0
    assert model.training
    assert model._compiled_call_impl is not None


def test_inside_torch_func_there_is_a_word():
    model, x = nn.Linear(3, 2), torch.rand(20, 3)
    fair = FairRegularizer(FairMetric(torch.eye(3)[:, :1]))
    with pytest.raises(RuntimeError, match=r"torch\.func"):
        torch.func.grad(lambda x: fair(model, x))(x)


def test_another_thread_sees_nothing():
    torch.manual_seed(0)

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x):
            return self.head(torch.tanh(self.body(x)))

    model, x = Named().train(), torch.rand(30, 4)
    expected, wrong, stop = model(x).detach(), [], threading.Event()

    def use():
        while not stop.is_set():
            with torch.no_grad():
                wrong.append(not torch.equal(model(x), expected) or not model.training)

    thread = threading.Thread(target=use)
    thread.start()
    try:
        fair = FairRegularizer(FairMetric(torch.eye(4)[:, :1]), first_layer="body").eval()
        for _ in range(40):
            fair(model, x)
    finally:
        stop.set()
        thread.join()
    assert len(wrong) > 3
    assert not any(wrong)


AUTOCAST = [torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", AUTOCAST)
@pytest.mark.parametrize("name", ["first linear", "convolution first", "tanh"])
def test_autocast_gives_the_value_and_slope_of_float32(name, dtype):
    torch.manual_seed(0)
    model = {
        "first linear": nn.Sequential(nn.Linear(16, 20), nn.ReLU(), nn.Linear(20, 3)),
        "tanh": nn.Sequential(nn.Linear(16, 20), nn.Tanh(), nn.Dropout(0.5), nn.Linear(20, 3)),
        "convolution first": nn.Sequential(
            nn.Unflatten(1, (1, 4, 4)), nn.Conv2d(1, 5, 3), nn.Flatten(), nn.Linear(20, 3)
        ),
    }[name].train()
    x, metric = torch.rand(50, 16), FairMetric(torch.eye(16)[:, :3])
    results = []
    for enabled in (False, True):
        model.zero_grad()
        fair = FairRegularizer(metric, generator=seeded(), bounds=(0.0, 1.0), lam=0.05)
        with torch.autocast("cpu", dtype=dtype, enabled=enabled):
            value = fair(model, x)
        assert value.dtype == torch.float32
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=enabled)
        scaler.scale(value).backward()
        slope = torch.cat([p.grad.ravel() for p in model.parameters()]) / (1024.0 if enabled else 1.0)
        results.append((value.item(), slope, fair.lam.item()))
    assert results[1][0] == pytest.approx(results[0][0], rel=0.1)
    assert results[1][2] == pytest.approx(results[0][2], rel=0.01)
    similar = torch.cosine_similarity(results[0][1], results[1][1], dim=0)
    assert similar > 0.98


@pytest.mark.parametrize("dtype", AUTOCAST)
def test_a_model_in_half_precision(dtype):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 3)).to(dtype)
    x, metric = torch.rand(50, 6).to(dtype), FairMetric(torch.eye(6)[:, :2])
    low = FairRegularizer(metric, generator=seeded(), bounds=(0.0, 1.0), lam=0.05).to(dtype)
    value = low(model, x)
    value.backward()
    full = FairRegularizer(metric.float(), generator=seeded(), bounds=(0.0, 1.0), lam=0.05)
    assert value.item() == pytest.approx(full(copy.deepcopy(model).float(), x.float()).item(), rel=0.1)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_the_view_of_rows():
    model, x = made(Picture).eval(), torch.rand(6, 1, 4, 4, dtype=torch.float64)
    view = ModelView(model, x)
    assert view.x.shape == (6, 16)
    torch.testing.assert_close(view(view.x), model(x))
    torch.testing.assert_close(DistanceGain(view.h_x())(view(view.x + 1)), (model(x) - model(x + 1)).square().mean(1))


class Overwriting(nn.Module):
    """Writes over all that it is given, and not twice the same."""

    def forward(self, x=None, scale=None):
        x = x.mul_(2.0).relu_() if scale is None else x.mul_(scale.mul_(2.0)).relu_()
        return 3.0 * x


def overwriting(given, kind):
    """A model that overwrites what it is given in place of another that does the same without."""
    first = Overwriting() if given else nn.Sequential(Doubling(), nn.ReLU(), Tripling())
    torch.manual_seed(0)
    rest = [nn.Dropout(0.5)] if kind == "not mode free" else []
    return nn.Sequential(first, *rest, nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).double().train()


class Doubling(nn.Module):
    def forward(self, x):
        return 2.0 * x


class Tripling(nn.Module):
    def forward(self, x):
        return 3.0 * x


@pytest.mark.parametrize("kind", ["mode free", "not mode free", "a function", "at"])
def test_models_that_overwrite_their_input(kind):
    x, metric = torch.randn(20, 3, dtype=torch.float64), FairMetric(torch.eye(3, dtype=torch.float64)[:, :1])
    before, results, gradients = x.clone(), [], []
    for in_place in (True, False):
        model = overwriting(in_place, kind)
        called = (lambda z, model=model: model(z)) if kind == "a function" else model
        fair = FairRegularizer(metric, lam=0.1, generator=seeded(), at="0" if kind == "at" else None)
        results.append(fair.evaluate(called, x))
        results[-1].value.backward()
        gradients.append([p.grad for p in model.parameters()])
        assert torch.equal(x, before)
    torch.testing.assert_close(results[0].value, results[1].value)
    torch.testing.assert_close(results[0].found.x_worst, results[1].found.x_worst)
    for ours, plain in zip(*gradients):
        torch.testing.assert_close(ours, plain)


def test_other_inputs_may_be_overwritten_too():
    torch.manual_seed(0)
    x, scale = torch.randn(20, 3, dtype=torch.float64), torch.rand(20, 3, dtype=torch.float64)
    given = scale.clone()
    fair = FairRegularizer(euclidean(3), search=shift, vary="x")
    d_y = fair.evaluate(Overwriting(), {"x": x, "scale": scale}).d_y
    expected = (3 * (2 * given * x).relu() - 3 * (2 * given * (x + 0.3)).relu()).square().mean()
    torch.testing.assert_close(d_y, expected)
    torch.testing.assert_close(
        FairRegularizer(euclidean(3), search=shift, vary=0).evaluate(Overwriting(), (x, scale)).d_y, expected
    )
    assert torch.equal(scale, given)


@pytest.mark.parametrize("in_place", [True, False])
def test_at_a_layer_whose_output_is_overwritten_behind_it(in_place):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=in_place), nn.Linear(4, 2)).double()
    x = torch.randn(20, 3, dtype=torch.float64)
    view = ModelView(model, x, at="0")
    torch.testing.assert_close(view.x, model[0](x))
    torch.testing.assert_close(view.h_x(), model(x))


class ByBatch(nn.Module):
    """BatchNorm without running statistics: what is said of a person depends on the others."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Identity(), nn.BatchNorm1d(3, track_running_stats=False)
        self.second, self.head = nn.Identity(), nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.second(self.norm(self.first(x))))


WAYS = {
    "tensor": (lambda x: x, {}),
    "dict": (lambda x: {"x": x}, {}),
    "tuple": (lambda x: (x,), {}),
    "at": (lambda x: x, {"at": "first"}),
}


@pytest.mark.parametrize("n", [2, 3, 8, 64])
@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_compares_people_is_refused(way, n):
    given, options = WAYS[way]
    model, x = made(ByBatch), torch.rand(n, 3, dtype=torch.float64)
    for _ in range(2):
        with pytest.raises(ValueError, match="or with the others in the batch"):
            ModelView(model, given(x), **options)


class TimeFirst(nn.Module):
    """Sequences (T, n, K): what is taken for people are moments, each of which changes those after it, or before it."""

    def __init__(self, backwards):
        super().__init__()
        self.first, self.backwards = nn.GRU(3, 3), backwards

    def forward(self, x):
        return self.first(x.flip(0))[0].flip(0) if self.backwards else self.first(x)[0]


class Pairs(nn.Module):
    """Two views of each person, far apart or side by side, which are compared."""

    def __init__(self, apart):
        super().__init__()
        self.first, self.apart = nn.Linear(3, 3), apart

    def forward(self, x):
        h = self.first(x)
        two = h.view(2, -1, 3) if self.apart else h.view(-1, 2, 3).movedim(1, 0)
        two = two - two.mean(0)
        return (two if self.apart else two.movedim(0, 1)).reshape(-1, 3)


@pytest.mark.parametrize("n", [4, 6, 10, 64])
@pytest.mark.parametrize("model", [TimeFirst(False), TimeFirst(True), Pairs(False), Pairs(True)])
def test_whoever_makes_a_difference_to_somebody_else_is_found(model, n):
    x = torch.rand(n, 5, 3) if isinstance(model, TimeFirst) else torch.rand(n, 3)
    with pytest.raises(ValueError, match="or with the others in the batch"):
        ModelView(model, x)


@pytest.mark.parametrize("first", ["equal people", "a last layer of zeros", "another way", "no number"])
def test_only_what_was_seen_is_remembered(first):
    """Batches that show nothing about the model, and then one that does."""
    model, x = made(ByBatch), torch.rand(20, 3, dtype=torch.float64)
    if first == "equal people":
        ModelView(model, x[:1].expand(20, 3))
    elif first == "a last layer of zeros":
        weight = model.head.weight.detach().clone()
        nn.init.zeros_(model.head.weight)
        ModelView(model, x)
        model.head.weight.data.copy_(weight)
    elif first == "another way":
        ModelView(model, x, at="second")  # behind the norm
    else:
        ModelView(model, torch.where(torch.arange(20)[:, None] == 4, torch.nan, x))  # who stays
    with pytest.raises(ValueError, match="or with the others in the batch"):
        ModelView(model, x)


class Counting(ByBatch):
    def forward(self, x):
        self.calls.append(len(x))
        return self.head(self.second(self.first(x)))


@pytest.mark.parametrize("way", WAYS)
def test_a_model_is_asked_about_its_rows_once(way):
    given, options = WAYS[way]
    model, calls = made(Counting), []
    model.calls = calls
    reach = 1 if way == "at" else 0  # whether what moves reaches the output
    whole = 0 if way == "at" else 1  # whether it hides modules, which with at= is seen on the way
    for n, asked in ((1, 2 + reach + whole), (1, 0), (20, 2 + reach), (20, 0), (1, 0), (5, 0)):
        calls.clear()
        ModelView(model, given(torch.rand(n, 3, dtype=torch.float64)), **options)
        assert len(calls) == asked + (way == "at")  # where h(x) comes with the layer's output


class Recurrent(nn.Module):
    """The same function, read off a recurrent layer's output in several ways."""

    def __init__(self, kind, read):
        super().__init__()
        self.body, self.head, self.read = kind(3, 4, batch_first=True), nn.Linear(4, 2), read

    def forward(self, x):
        out, last = self.body(x)
        last = (last[0] if isinstance(last, tuple) else last)[-1]
        return self.head({"out": out[:, -1], "h_n": last, "both": (out[:, -1] + last) / 2}[self.read])


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("trained", [True, False])
def test_at_a_recurrent_layer_of_which_another_part_is_read(kind, n, trained):
    x = torch.rand(n, 5, 3, dtype=torch.float64)
    fair = FairRegularizer(FairMetric(torch.eye(20, dtype=torch.float64)[:, 16:18]), at="body", eps=0.0, bounds=(-1, 1))
    assert fair(made(Recurrent, kind, "out").requires_grad_(trained), x) > 0
    for read, says in (("h_n", "does not reach"), ("both", "is not all that reaches")):
        model = made(Recurrent, kind, read).requires_grad_(trained)
        for _ in range(2):
            with pytest.raises(
                ValueError, match=rf"at='body' {says} .*out\[:, -1\] in the place of h_n.*wrap the layer"
            ):
                fair(model, x)


class Beside(nn.Module):
    def __init__(self, read):
        super().__init__()
        self.first, self.head, self.read = Pair(), nn.Linear(3, 2), read

    def forward(self, x):
        one, other = self.first(x)
        if self.read == "a step":
            return self.head((one > 0.5).to(x))
        if self.read == "one and, detached, the other":
            return self.head(one + other)
        return self.head({"one": one, "other": other, "none": x}[self.read])


class Pair(nn.Module):
    def forward(self, x):
        return 2.0 * x, 3.0 * x


@pytest.mark.parametrize("read", ["one", "a step", "one and, detached, the other", "other", "none"])
@pytest.mark.parametrize("n", [1, 6])
def test_at_a_layer_that_does_not_reach_the_output(read, n):
    """A step has no slope, and other searches than those along slopes see it move all the same."""
    model, x = made(Beside, read), torch.rand(n, 3, dtype=torch.float64)
    if read in ("other", "none"):
        with pytest.raises(ValueError, match="what moves at at='first' does not reach the output that is judged"):
            ModelView(model, x, at="first")
    else:
        ModelView(model, x, at="first")


def test_what_is_judged_decides_what_reaches_it():
    class Two(Picture):
        def forward(self, x):
            return {"logits": self.head(self.features(x)), "size": x.mean((1, 2, 3))}

    model, x = made(Two), torch.rand(6, 1, 4, 4, dtype=torch.float64)
    ModelView(model, x, at="features")
    with pytest.raises(ValueError, match="does not reach"):
        ModelView(model, x, at="features", output=lambda o: o["size"])


class Kept:
    """What a look at a module's children does not find."""

    def __init__(self, module):
        self.module = module


class Hiding(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 8)
        self.kept = Kept(nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2)).double())

    def forward(self, x):
        return self.kept.module(torch.tanh(self.first(x)))


@pytest.mark.parametrize("eval_first", [True, False])
@pytest.mark.parametrize("way", ["module", "a function", "at", "first_layer"])
def test_modules_that_are_hidden_beside_visible_ones(way, eval_first):
    """Whatever their mode was when the model was first seen: dropout is no unfairness, and statistics rest."""
    model, x = made(Hiding), torch.rand(20, 3, dtype=torch.float64)
    inner, behind = model.kept.module, weakref.ref(model.kept.module)
    called = (lambda z: behind()(torch.tanh(model.first(z)))) if way == "a function" else model
    options = {"at": "first"} if way == "at" else {"first_layer": "first"} if way == "first_layer" else {}
    metric = FairMetric(torch.eye(8 if way == "at" else 3, dtype=torch.float64)[:, :1])

    def value():
        fair = FairRegularizer(metric, generator=seeded(), lam=0.1, search=GradientSearch(fast=False), **options)
        return fair(called, x)

    inner.eval()
    expected = value() if eval_first else None
    inner.train()
    first = value()
    assert all(part.training for part in inner)
    assert inner[0].num_batches_tracked == 0
    inner.eval()
    torch.testing.assert_close(first, value() if expected is None else expected, rtol=0, atol=0)
    trained = ModelView(called, x, **options).parameters()
    assert {id(p) for p in trained} == {id(p) for part in (model.first, inner) for p in part.parameters()}


def test_modules_made_for_a_call_are_not_looked_for_again():
    class Making(Counting):
        def forward(self, x):
            return nn.Softmax(1)(super().forward(x))

    model, calls = made(Making), []
    model.calls = calls
    for asked in (3, 0):
        calls.clear()
        ModelView(model.train(), torch.rand(20, 3, dtype=torch.float64))
        assert len(calls) == asked


@pytest.mark.parametrize("first", [None, nn.LayerNorm, nn.BatchNorm1d], ids=["linear", "LayerNorm", "BatchNorm1d"])
@pytest.mark.parametrize("tail", [nn.ReLU, nn.Tanh])
def test_outputs_at_some_worst_cases_in_one_way_through_the_model(first, tail):
    """Values, gradients for parameters and for what x was computed from, and gradients of these, against the model."""
    torch.manual_seed(0)
    head = [] if first is None else [first(4)]
    model = nn.Sequential(*head, nn.Linear(4, 8), tail(), nn.Linear(8, 2)).double().eval()
    base, metric = torch.rand(10, 4, dtype=torch.float64), FairMetric(torch.eye(4, dtype=torch.float64)[:, :2])
    groups = [torch.arange(0, 10, 2), torch.tensor([4, 8])]
    twice = []
    for together in (True, False):
        before = torch.ones(4, dtype=torch.float64, requires_grad=True)
        x = base * before
        view = ModelView(model, x)
        own = torch.Generator().manual_seed(1)
        parts = [view.part(rows) for rows in groups]
        found = [
            GradientSearch()(part, DistanceGain(part.h_x()), part.x, metric, lam, None, own)
            for part, lam in zip(parts, (0.01, float("inf")))
        ]
        assert not any(part.h_x().requires_grad for part in parts)
        if together:
            h, worst = view.with_worst(list(zip(found, groups)), metric)
        else:
            shifted = [x[rows] + (each.x_worst - x[rows]).detach() for each, rows in zip(found, groups)]
            h, worst = model(x), [model(each) for each in shifted]
        value = h.square().mean() + sum((h[rows] - w).square().mean() for rows, w in zip(groups, worst))
        leaves = [before, *model.parameters()]
        slopes = torch.autograd.grad(value, leaves, create_graph=True)
        again = torch.autograd.grad(sum(s.square().sum() for s in slopes), leaves)
        twice.append([h, *worst, *slopes, *again])
    assert all(float(each.detach().abs().max()) > 1e-6 for each in twice[1])
    for ours, known in zip(*twice):
        torch.testing.assert_close(ours, known)


def test_a_gradient_that_is_written_over_is_nobody_elses():
    """Twice back through the same graph gives the same."""
    torch.manual_seed(0)
    model, x, rows = (
        nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
        torch.rand(10, 4),
        torch.arange(0, 10, 2),
    )
    metric = FairMetric(torch.eye(4)[:, :2])
    view = ModelView(model, x)
    part = view.part(rows)
    found = GradientSearch()(part, DistanceGain(part.h_x()), part.x, metric, 0.01, None, torch.Generator())
    h, (worst,) = view.with_worst([(found, rows)], metric)
    value = (h[rows] - worst).square().mean() + h.square().mean()
    first, second = (torch.autograd.grad(value, list(model.parameters()), retain_graph=True) for _ in range(2))
    for a, b in zip(first, second):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (torch.zeros(4, 2), {}, "must be a module or a function of x, and .* computed here; got Tensor"),
        (lambda x: x, {"at": "encoder"}, "at='encoder' names a layer of a module, and the model is a function"),
    ],
)
def test_a_model_of_another_kind_is_named(model, options, message):
    with pytest.raises(TypeError, match=message):
        ModelView(model, torch.rand(4, 2), **options)
