"""What eight versions of a text lose against all: the CTF score, the worst move, and the directions of FACE.

The comments of moderation_rows.txt, of which all 50 versions are encoded; eight are drawn of each as
`TokenSwap(sample=8)` does. One plain network, trained on the other comments, is judged with all versions and with
the drawn ones, DRAWS times. Directions: which share of how all versions differ lies outside the K that were learned,
from all versions or from the drawn ones.

    python experiments/sampled_versions.py [--quick]
"""

import json
from pathlib import Path

import numpy as np
from moderation import PASSAGE
from sklearn.feature_extraction.text import HashingVectorizer
from text_tables import SHARED, arguments, encoder

from evenhand.counterfactuals import TokenSwap, identity_tokens
from evenhand.datasets import jigsaw_toxicity, templates
from evenhand.estimators import ERMClassifier
from evenhand.evaluation import ctf_std
from evenhand.fair_metrics import face
from evenhand.text import TextFeatures
from evenhand.variations import Variations

SAMPLE, DRAWS, K = 8, 20, 25
NAME = "sampled_versions"


def versioned(texts: list[str]) -> set[str]:
    """A third of the comments that mention an identity, every third in the order of the file."""
    return {texts[int(row)] for row in (Path(__file__).parent / "moderation_rows.txt").read_text().split()}


def outside(directions: np.ndarray, versions: Variations) -> float:
    """The share of how versions differ, in squared length, that lies outside the directions."""
    change = versions.values - versions.values.mean(axis=1, keepdims=True)
    rest = change - change @ directions @ directions.T
    return float(np.square(rest).sum() / np.square(change).sum())


def measured(x: np.ndarray, y: np.ndarray, versions: Variations, steps: int, sample: int, k: int) -> dict[str, float]:
    net = ERMClassifier(hidden=(500,), steps=steps, batch_size=256, lr=1e-3, random_state=0).fit(x, y)
    p = versions.map(net.predict_proba).values[:, :, 1]
    every = ctf_std(p), float(np.abs(p - p[:, :1]).max(axis=1).mean())
    drawn: list[tuple[float, float, float]] = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        of = np.stack([np.r_[0, 1 + rng.permutation(p.shape[1] - 1)[:sample]] for _ in p])
        q, rows = np.take_along_axis(p, of, axis=1), np.arange(len(p))[:, None]
        some = face(Variations(versions.values[rows, of], versions.rows), k).directions.numpy()
        drawn.append((ctf_std(q), float(np.abs(q - q[:, :1]).max(axis=1).mean()), outside(some, versions)))
    ctf, worst, rest = np.array(drawn).T
    return {
        "texts": len(p),
        "versions": p.shape[1] - 1,
        "sample": sample,
        "ctf": every[0],
        "ctf sampled": float(ctf.mean()),
        "ctf sampled sd": float(ctf.std(ddof=1)),
        "worst move": every[1],
        "worst move sampled": float(worst.mean()),
        "outside": outside(face(versions, k).directions.numpy(), versions),
        "outside sampled": float(rest.mean()),
    }


def main() -> None:
    given = arguments(__doc__)
    if given.quick:
        comments = templates(200, seed=0)
        counts = HashingVectorizer(n_features=64, norm="l2")
        features = TextFeatures(lambda texts: counts.transform(texts).toarray())
        swapped = TokenSwap(list(comments.groups.columns))(comments.texts[:60])
        found = measured(features.fit_transform(comments.texts), comments.y, swapped.map(features.transform), 20, 3, 4)
    else:
        comments = jigsaw_toxicity(SHARED / "toxicity" / "comments.csv", text="text")
        about = versioned(comments.texts)
        features = TextFeatures(encoder(given.encoder))
        others = [i for i, text in enumerate(comments.texts) if text not in about]
        x = features.fit_transform([comments.texts[i] for i in others])
        swap = TokenSwap(identity_tokens(), passage=PASSAGE)
        swapped = swap([text for text in comments.texts if text in about])
        found = measured(x, comments.y[others], swapped.map(features.transform), 400, SAMPLE, K)
    given.out.mkdir(parents=True, exist_ok=True)
    path = Path(given.out) / f"{NAME}{'_quick' if given.quick else ''}.json"
    path.write_text(json.dumps({key: round(value, 5) for key, value in found.items()}, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
