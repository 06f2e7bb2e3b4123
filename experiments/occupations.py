"""Occupations with the default recipe, `TextClassifier`: Table 2's scores, fair with respect to gender.

Random 70-30 splits of 14,000 sentences with 28 occupations. The swap is the one for biographies: pronouns, titles,
nouns and the name of the person the sentence is about. Rho and calibration are chosen by the classifier itself on a
fifth of its training sentences, for every method by the same rule; no test sentence is looked at before.
occupations_choice.csv has what the rule saw of each rho on these.

    python experiments/occupations.py [--quick] [--seeds 10] [--data bios.csv]
"""

import time
import warnings
from typing import Any

import numpy as np
from table2_bios import DRAWS, PUBLISHED, QUICK_SENTENCES, SENTENCES, gaps_of, load, shuffled
from table2_bios import SCORES as TABLE_2
from text_tables import Runs, arguments, encoder, markdown, on_validation, table

from evenhand.counterfactuals import GenderSwap, names_in
from evenhand.datasets import Biographies
from evenhand.evaluation import balanced_accuracy, ctf_squared, prediction_consistency
from evenhand.text import TextClassifier
from evenhand.variations import Variations

NAME = "occupations"
METHODS = {"Baseline": "plain", "SenSeI": "sensei", "SenSR": "sensr", "CLP": "clp"}
SCORES = (*TABLE_2, "Gap RMS chance")
QUICK_KEPT = 60  # of a quick run
QUICK = {"hidden": (20,), "steps": 10, "k": 5}


def scores(model: TextClassifier, swap: GenderSwap, bios: Biographies, test: np.ndarray) -> dict[str, float]:
    texts, y, gender = [bios.texts[i] for i in test], bios.y[test], bios.gender[test]
    predicted = model.predict(texts)
    vectors, blind = model.features_.seen(swap(texts))
    p = vectors.map(lambda x: model.calibration_.probabilities(model._logits(x)))
    gaps, rng = gaps_of(y, predicted, gender), np.random.RandomState(0)
    return {
        "rho": model.rho_,
        "BA": balanced_accuracy(y, predicted),
        "CTF": ctf_squared(p),
        "PC": prediction_consistency(Variations(p.values.argmax(axis=2), p.rows)),
        "Gap RMS": gaps.rms,
        "Gap ABS": gaps.abs,
        "Gap RMS chance": float(np.mean([gaps_of(y, predicted, shuffled(gender, y, rng)).rms for _ in range(DRAWS)])),
        "blind": float(blind),
    }


def main() -> None:
    given = arguments(__doc__)
    bios = load(given.data, QUICK_SENTENCES if given.quick else SENTENCES)
    embed = encoder(given.encoder)
    embed.progress = False
    swap = GenderSwap(nouns=True, names=names_in(bios.texts))
    kept = np.arange(len(bios.texts))
    if given.quick:  # short sentences of the four most common occupations
        most = np.argsort(-np.bincount(np.unique(bios.y, return_inverse=True)[1]))[:4]
        kept = np.flatnonzero(np.isin(bios.y, np.unique(bios.y)[most]) & np.array([len(t) < 160 for t in bios.texts]))
        kept = kept[:QUICK_KEPT]
    bios = Biographies([bios.texts[i] for i in kept], bios.y[kept], bios.gender[kept])
    less: dict[str, Any] = QUICK if given.quick else {}
    runs = Runs(given.out / f"{NAME}{'_quick' if given.quick else '_runs'}.csv")
    tried = Runs(given.out / f"{NAME}{'_quick' if given.quick else ''}_choice.csv")
    for seed in range(1 if given.quick else given.seeds):
        train, test = np.split(np.random.RandomState(seed).permutation(len(bios.texts)), [int(0.7 * len(bios.texts))])
        for method in METHODS:

            def make(
                method: str = method, seed: int = seed, train: np.ndarray = train, test: np.ndarray = test
            ) -> dict[str, float]:
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = TextClassifier(embed, swap, METHODS[method], random_state=seed, **less)
                    model.fit([bios.texts[i] for i in train], bios.y[train])
                took = time.process_time() - start
                for row in [{"rho": 0.0, **model.plain_}, *(model.choice_ if METHODS[method] != "plain" else [])]:
                    tried.run(seed, method, {"rho": row["rho"]}, lambda row=row: on_validation(row))
                return {**scores(model, swap, bios, test), "fit seconds": took}

            runs.run(seed, method, {}, make)
    result = table(runs.frame, SCORES, {name: (*row, np.nan) for name, row in PUBLISHED.items()})
    print(markdown(result, SCORES))
    if not given.quick:
        result.to_csv(given.out / f"{NAME}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
