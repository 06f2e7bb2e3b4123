"""Table 1: toxicity of comments, fair with respect to 50 identity tokens.

Ten random 70-30 splits. In each, 25 random tokens are known in training, for FACE and for CLP; the scores are
computed with all 50. The default data are a stand-in without identity annotations: a group is "mentions a token of
the group".

    python experiments/table1_toxicity.py [--quick] [--tune] [--data train.csv]
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from text_tables import SHARED, TUNING_SEEDS, Experiment, Setting, Task, arguments, encoder, task

from evenhand import evaluation
from evenhand.counterfactuals import TokenSwap, identity_tokens
from evenhand.datasets import Comments, civil_comments, jigsaw_toxicity
from evenhand.text import SentenceEncoder

# The published rows: BA, CTF score, PC, BA STD, ACC STD
PUBLISHED = {
    "Baseline": (0.807, 0.072, 0.621, 0.044, 0.081),
    "SenSeI": (0.791, 0.029, 0.773, 0.035, 0.052),
    "SenSR": (0.794, 0.043, 0.729, 0.036, 0.059),
    "CLP": (0.795, 0.032, 0.763, 0.038, 0.056),
}
SCORES = ("BA", "CTF", "PC", "BA STD", "ACC STD")

# The paper: 100k steps at lr 1e-5, s = .1, se = 10, rho = 5, eps = 0. Ours: few steps at a larger rate, cosine decay,
# and some room (eps) for what the directions of the known tokens leave out of the unknown ones.
TRAINING = {"hidden": (2000,), "steps": 500, "batch_size": 256, "lr": 1e-3}
SETTINGS: dict[str, Setting] = {  # chosen on validation data, results/table1_toxicity_tuning.csv
    "Baseline": {},
    "Project": {},
    "SenSeI": {"rho": 0.3, "step": 0.5, "steps": 5, "eps": 1.0},
    "SenSR": {"step": 1.0, "steps": 5},
    "CLP": {"rho": 2.0},
}
K = 25  # sensitive directions
PAPERS = partial(TokenSwap, plurals=False, everywhere=True)  # the paper swaps every token wherever it stands
QUICK_COMMENTS = 12  # with one token and with none, of a quick run: 50 versions of each have to be encoded

TUNING: list[tuple[str, Setting]] = [
    ("Baseline", {}),
    *[("CLP", {"rho": rho}) for rho in (1.0, 2.0, 5.0, 20.0)],
    *[("SenSeI", {"rho": rho, "step": 0.5, "steps": 5, "eps": 0.3}) for rho in (1.0, 2.0, 3.0, 5.0, 20.0)],
    *[("SenSeI", {"rho": rho, "step": 0.5, "steps": 5}) for rho in (1.0, 3.0, 5.0)],
    *[("SenSeI", {"rho": rho, "step": 0.5, "steps": 5, "eps": 1.0}) for rho in (1.0, 0.5, 0.3, 2.0)],
    ("SenSeI", {"rho": 0.3, "step": 0.5, "steps": 5, "eps": 3.0}),
    *[("SenSR", {"step": step, "steps": 5}) for step in (0.5, 1.0)],
    ("SenSR", {"step": 1.0, "steps": 5, "eps": 0.3}),
]
DRAWS = 20  # of random groups, for the spread that chance alone gives

GROUPS = {  # wide enough to have some comments of either label in each test part
    "gender": ["male", "female"],
    "lgbtq": [
        "lesbian",
        "gay",
        "bisexual",
        "transgender",
        "trans",
        "queer",
        "lgbt",
        "lgbtq",
        "homosexual",
        "nonbinary",
    ],
    "religion": ["christian", "muslim", "jewish", "buddhist", "catholic", "protestant", "sikh", "taoist"],
    "black": ["black", "african", "african american"],
    "white": ["white", "european"],
    "asian": ["asian", "indian", "chinese", "japanese", "middle eastern"],
    "american": ["american", "canadian", "mexican", "hispanic", "latino", "latina", "latinx"],
    "age": ["old", "older", "young", "younger", "teenage", "millenial", "middle aged", "elderly"],
}


def load(path: Path | None, some: int | None = None) -> Comments:
    """The paper's data if a path is given; else the stand-in, with groups by the tokens a comment mentions.

    some: keep so many comments with a token and as many without.
    """
    if path is not None:
        return civil_comments(path)
    everything = jigsaw_toxicity(SHARED / "toxicity" / "comments.csv", text="text")
    mentioned = PAPERS(identity_tokens()).mentioned(everything.texts)
    groups = pd.DataFrame({name: [bool(found & set(tokens)) for found in mentioned] for name, tokens in GROUPS.items()})
    print(f"{len(mentioned):,} comments, {sum(map(bool, mentioned)):,} with a token", flush=True)
    if some is None:
        return Comments(everything.texts, everything.y, groups)
    count = np.array([len(found) for found in mentioned])
    rng = np.random.RandomState(0)
    rows = np.concatenate([rng.permutation(np.flatnonzero(kind))[:some] for kind in (count == 1, count == 0)])
    return Comments([everything.texts[i] for i in rows], everything.y[rows], groups.iloc[rows])


def prepare(comments: Comments, embed: SentenceEncoder, seed: int, tuning: bool) -> tuple[Task, pd.DataFrame]:
    """The split of this seed; for tuning, the training part is split again and its test part is never touched."""
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(comments.texts))
    train, test = np.split(order, [int(0.7 * len(order))])
    if tuning:
        train, test = np.split(train, [int(0.7 * len(train))])
    tokens = identity_tokens()
    known = [tokens[i] for i in sorted(rng.permutation(50)[:25])]
    unknown = set(tokens) - set(known)
    texts, held_out = ([comments.texts[i] for i in rows] for rows in (train, test))
    # Versions in training: comments whose tokens are all known ones, swapped among the known ones.
    blank = ["" if found & unknown else text for text, found in zip(texts, PAPERS(tokens).mentioned(texts))]
    seen = PAPERS(known)(blank).map(embed)
    versions = PAPERS(tokens)(held_out).map(embed)
    k = min(K, len(seen.values) * (len(known) - 1))  # a quick run may have a single comment with known tokens only
    split = task(embed(texts), comments.y[train], seen, embed(held_out), comments.y[test], versions, k)
    return split, comments.groups.iloc[test]


def group_shares(comments: Comments) -> pd.DataFrame:
    """How many comments each group has, and what share of them is toxic."""
    rows = [
        {"group": name, "comments": int(members.sum()), "toxic share": round(float(comments.y[members].mean()), 3)}
        for name, members in comments.groups.items()
    ]
    return pd.DataFrame(
        [*rows, {"group": "all", "comments": len(comments.y), "toxic share": round(comments.y.mean(), 3)}]
    )


def left_out(t: Task) -> dict[str, float]:
    """Which share of how versions differ, in squared length, lies outside the directions of the metric."""
    directions = t.metric.directions.numpy()
    shares = {}
    for part, versions in (("training", t.seen), ("test", t.versions)):
        change = versions.values - versions.values.mean(axis=1, keepdims=True)
        rest = change - change @ directions @ directions.T
        shares[part] = round(float(np.square(rest).sum() / np.square(change).sum()), 4)
    return shares


def scores(model: object, t: Task, groups: pd.DataFrame) -> dict[str, float]:
    predicted = model.predict(t.x_test)
    toxic = t.versions.map(lambda x: model.predict_proba(x)[:, 1])
    members = {name: groups[name].to_numpy() for name in groups}
    spread = evaluation.accuracy_spread(t.y_test, predicted, members)
    rng = np.random.RandomState(0)
    chance = [evaluation.accuracy_spread(t.y_test, predicted, alike(members, t.y_test, rng)) for _ in range(DRAWS)]
    return {
        "BA": evaluation.balanced_accuracy(t.y_test, predicted),
        "CTF": evaluation.ctf_std(toxic),
        "PC": evaluation.prediction_consistency(toxic.map(lambda p: p > 0.5)),
        "BA STD": spread.balanced_accuracy_std,
        "ACC STD": spread.accuracy_std,
        "BA STD chance": float(np.mean([c.balanced_accuracy_std for c in chance])),
        "ACC STD chance": float(np.mean([c.accuracy_std for c in chance])),
    }


def alike(members: dict[str, np.ndarray], y: np.ndarray, rng: np.random.RandomState) -> dict[str, np.ndarray]:
    """Groups of random comments, each with as many of either label as the real one: their spread is chance."""
    drawn = {}
    for name, member in members.items():
        drawn[name] = np.zeros(len(y), dtype=bool)
        for label in (0, 1):
            rows = np.flatnonzero(y == label)
            drawn[name][rng.choice(rows, size=int(member[rows].sum()), replace=False)] = True
    return drawn


EXPERIMENT = Experiment("table1_toxicity", SETTINGS, TUNING, TRAINING, SCORES, PUBLISHED, scores)


def main() -> None:
    given = arguments(__doc__)
    embed = encoder(given.encoder)
    comments = load(given.data, QUICK_COMMENTS if given.quick else None)
    if given.tune:
        EXPERIMENT.tune([prepare(comments, embed, seed, tuning=True) for seed in TUNING_SEEDS], given.out)
        return
    EXPERIMENT.restart(lambda seed: prepare(comments, embed, seed, tuning=False), given.seeds, given.out, given.quick)
    if not given.quick:
        group_shares(comments).to_csv(given.out / f"{EXPERIMENT.name}_groups.csv", index=False, lineterminator="\n")
        outside = [
            {"seed": seed, **left_out(prepare(comments, embed, seed, tuning=False)[0])} for seed in range(given.seeds)
        ]
        path = given.out / f"{EXPERIMENT.name}_directions.csv"
        pd.DataFrame(outside).to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
