"""Comments with the default recipe, `TextClassifier`: consistency, and who is flagged for it.

Ten random 70-30 splits of the comments. In each, 25 random tokens of 50 are known in training; consistency and CTF
score are computed with all 50 (`about_people` holds none of the unknown ones). Rho, calibration and threshold are
chosen by the classifier itself on a fifth of its training comments, for every method by the same rule; no test comment
and no sentence of identity_templates.py is looked at before. moderation_choice.csv has what the rule saw: AUC and CTF
score on validation comments at each rho, and for Figure 2 also balanced accuracy and consistency.

    python experiments/moderation.py [--quick] [--seeds 10] [--backwards]
"""

import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from identity_templates import identity_sentences
from sklearn.base import clone
from table1_toxicity import GROUPS
from text_tables import SHARED, Runs, arguments, encoder, markdown, on_validation, table

from evenhand.counterfactuals import TokenSwap, identity_tokens
from evenhand.counterfactuals.texts import cleaned, with_article
from evenhand.datasets import Comments, about_people, jigsaw_toxicity, mentions
from evenhand.error_rates import auc, equal_error_rate, error_rates
from evenhand.evaluation import accuracy_spread, balanced_accuracy, ctf_std, prediction_consistency
from evenhand.text import TextClassifier
from evenhand.text.averaged import mean_network
from evenhand.text.validation import split as validation_split
from evenhand.variations import Variations

NAME = "moderation"
TOKENS = identity_tokens()
PASSAGE = 64  # words around the token
MENTIONS = 400  # sentences, of the known tokens only
METHODS: dict[str, tuple[str, bool]] = {  # method, with mentions
    "Baseline": ("plain", False),
    "Baseline, mean of 3": ("plain", False),  # as many networks as the rule may take of a fair method
    "Baseline + mentions": ("plain", True),
    "Blind": ("plain", False),  # the known tokens masked: what is done without any tool
    "Blind + mentions": ("plain", True),
    "CLP + mentions": ("clp", True),
    "SenSR + mentions": ("sensr", True),
    "SenSeI": ("sensei", False),
    "SenSeI + mentions": ("sensei", True),
}
SHOWN = ("BA", "AUC", "CTF", "PC", "FPR", "FPR id")  # the docs show them as several tables
ON_TEMPLATES = ("t AUC", "t EER", "t FPR", "t FNR", "FPED", "FNED")
SCORES = (*SHOWN, "AUC id", "AUC other", *ON_TEMPLATES, "BA STD", "ACC STD")
TABLE_1 = ("BA", "CTF", "PC", "BA STD", "ACC STD")  # the columns of the paper's table
MASK = "human"  # one word, an adjective and a noun
QUICK_COMMENTS = 60
QUICK = {"hidden": (20,), "steps": 10, "k": 5}


@dataclass(frozen=True)
class Only:
    """The swap, of some texts only; the others have no versions to train with. Every text is read by its list, and how
    is kept in `forms`, which all methods of a split share: they are timed without it."""

    swap: TokenSwap
    some: set[str]
    forms: dict[str, Any]

    def __call__(self, texts: list[str]) -> Variations:
        return self.swap([text if text in self.some else "" for text in texts])

    def alike(self, texts: list[str]) -> Variations:
        new = [text for text in dict.fromkeys(texts) if text not in self.forms]
        found = self.swap.alike(new)
        self.forms.update(dict.fromkeys(new) | {new[row]: read for row, read in zip(found.rows, found.values)})
        rows = [i for i, text in enumerate(texts) if self.forms[text] is not None]
        table = np.empty((len(rows), found.values.shape[1]), dtype=object)
        for i, row in enumerate(rows):
            table[i] = self.forms[texts[row]]
        return Variations(table, rows)


@cache
def kept(what: str, known: tuple[str, ...]) -> dict[str, Any]:
    """How the texts are read, or masked, with these tokens known: filled as they come."""
    return {}


def split(comments: Comments, seed: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Rows to train on, rows to test on, the known tokens."""
    rng = np.random.RandomState(seed)
    train, test = np.split(rng.permutation(len(comments.texts)), [int(0.7 * len(comments.texts))])
    return train, test, [TOKENS[i] for i in sorted(rng.permutation(len(TOKENS))[: len(TOKENS) // 2])]


def masked(swap: TokenSwap, texts: list[str]) -> list[str]:
    """The texts with every token that would be swapped replaced by one word.

    >>> masked(TokenSwap(["gay", "muslim"]), ["A gay man met Muslims in a gay bar."])
    ['A human man met human in a gay bar.']
    """
    out = []
    for text in map(cleaned, texts):
        for site in reversed([site for site in swap.sites(text) if not site.left]):
            text = with_article(text[: site.start], MASK) + MASK + text[site.end :]
        out.append(text)
    return out


def fitted(
    method: str, comments: Comments, seed: int, embed: Any, known_only: set[str], less: dict[str, Any]
) -> TextClassifier:
    train, _, known = split(comments, seed)
    kind, taught = METHODS[method]
    extra = mentions(known, 20 if less else MENTIONS, seed=seed)
    swap = Only(TokenSwap(known, passage=PASSAGE), known_only, kept("forms", tuple(known)))

    def read_masked(texts: list[str]) -> Any:
        seen = kept("masked", tuple(known))
        new = [text for text in dict.fromkeys(texts) if text not in seen]
        seen.update(zip(new, masked(TokenSwap(known), new)))
        return embed([seen[text] for text in texts])

    read = read_masked if method.startswith("Blind") else embed
    about = about_people(known)
    few = Variations(about.values[:2, :10], about.rows[:2])  # of a quick run
    model = TextClassifier(
        read,
        None if method.startswith("Blind") else swap,  # its versions all look alike
        kind,
        mentions=(extra.texts, extra.y) if taught else None,
        about=few if less else about,
        read_alike=None if method.startswith("Blind") else True,  # as with the TokenSwap itself
        random_state=seed,
        **less,
    )
    texts, y = [comments.texts[i] for i in train], comments.y[train]
    model.fit(texts, y)
    return averaged(model, texts, y) if method.endswith("mean of 3") else model


def averaged(plain: TextClassifier, texts: list[str], y: np.ndarray) -> TextClassifier:
    """The plain model with the mean of three networks, its own and two from other starts."""
    codes = np.searchsorted(plain.classes_, y)
    fit, held = validation_split(codes, plain.validation_fraction, plain.random_state, texts)
    x = plain.features_.transform(texts)
    others = [clone(plain.net_).set_params(random_state=1000 * i + plain.random_state) for i in (1, 2)]
    networks = [plain.net_.module_, *(net.fit(x[fit], codes[fit]).module_ for net in others)]
    plain.net_.module_ = mean_network(networks)
    plain._calibrate(x[held], codes[held])
    return plain


def scores(model: TextClassifier, comments: Comments, seed: int, found: list[set[str]]) -> dict[str, float]:
    _, test, _ = split(comments, seed)
    texts, y = [comments.texts[i] for i in test], comments.y[test]
    p = model.predict_proba(texts)[:, 1]
    flagged = p >= model.threshold_
    said = TokenSwap(TOKENS, passage=PASSAGE)(texts)
    vectors, blind = model.features_.seen(said)
    logits = vectors.map(lambda x: model._logits(x))
    toxic = model.calibration_.probabilities(logits.values.reshape(-1, 2))[:, 1].reshape(len(vectors), -1)
    stand = said.select(np.unique(vectors.rows)).map(
        lambda rows: model.features_.shrinkage_(model.features_.scaled(model.features_.vectors(rows)))
    )  # every version as it stands, as words that are in no list are read
    toxic_stand = model.calibration_.probabilities(stand.map(lambda x: model._logits(x)).values.reshape(-1, 2))[:, 1]
    about = np.array([bool(found[i]) for i in test])
    groups = {name: np.array([bool(found[i] & set(tokens)) for i in test]) for name, tokens in GROUPS.items()}
    spread = accuracy_spread(y, flagged.astype(int), groups)
    sentences = identity_sentences(TOKENS)
    truth, score = sentences["toxic"].to_numpy(), model.predict_proba(sentences["text"].tolist())[:, 1]
    rates = error_rates(truth, score >= model.threshold_, {t: sentences["token"] == t for t in TOKENS})
    return {
        "rho": model.rho_,
        "BA": balanced_accuracy(y, flagged.astype(int)),
        "AUC": auc(y, p),
        "AUC id": auc(y[about], p[about]),
        "AUC other": auc(y[~about], p[~about]),
        "CTF": ctf_std(toxic),
        "PC": prediction_consistency((toxic >= model.threshold_).astype(int)),
        "CTF stand": ctf_std(toxic_stand.reshape(len(stand), -1)),
        "FPR": float(flagged[y == 0].mean()),
        "FPR id": float(flagged[(y == 0) & about].mean()),
        "t AUC": auc(truth, score),
        "t EER": equal_error_rate(truth, score),
        "t FPR": rates.fpr,
        "t FNR": rates.fnr,
        "FPED": rates.fped,
        "FNED": rates.fned,
        "BA STD": spread.balanced_accuracy_std,
        "ACC STD": spread.accuracy_std,
        "blind": float(blind),
    }


def main() -> None:
    given = arguments(__doc__)
    if given.quick:
        TOKENS[:] = ["gay", "straight", "black", "white", "muslim", "christian", "old", "young"]
    embed = encoder(given.encoder)
    embed.progress = False
    comments = jigsaw_toxicity(SHARED / "toxicity" / "comments.csv", text="text")
    found = TokenSwap(TOKENS).mentioned(comments.texts)
    if given.quick:
        rows = []
        for label in (0, 1):
            mine = [i for i, text in enumerate(comments.texts) if comments.y[i] == label and len(text) < 90]
            rows += [i for i in mine if found[i]][:8] + [i for i in mine if not found[i]][: QUICK_COMMENTS // 2]
        comments = Comments([comments.texts[i] for i in rows], comments.y[rows], comments.groups.iloc[rows])
        found = [found[i] for i in rows]
    runs = Runs(given.out / f"{NAME}{'_quick' if given.quick else '_runs'}.csv")
    tried = Runs(given.out / f"{NAME}{'_quick' if given.quick else ''}_choice.csv")
    seeds = range(1 if given.quick else given.seeds)
    for seed in reversed(seeds) if given.backwards else seeds:
        _, _, known = split(comments, seed)
        unknown = set(TOKENS) - set(known)
        known_only = {text for text, tokens in zip(comments.texts, found) if not tokens & unknown}
        read = Only(TokenSwap(known, passage=PASSAGE), known_only, kept("forms", tuple(known))).alike(comments.texts)
        if not given.quick:  # so that no fit is timed with encoding what the next finds in the cache
            embed([*read.flat(), *about_people(known).flat(), *mentions(known, MENTIONS, seed=seed).texts])
        for method in METHODS:

            def make(method: str = method, seed: int = seed, known_only: set[str] = known_only) -> dict[str, float]:
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = fitted(method, comments, seed, embed, known_only, QUICK if given.quick else {})
                took = time.process_time() - start
                seen = [] if method.startswith("Blind") else [{"rho": 0.0, **model.plain_}]
                for row in [*seen, *(model.choice_ if METHODS[method][0] != "plain" else [])]:
                    tried.run(seed, method, {"rho": row["rho"]}, lambda row=row: on_validation(row))
                return {**scores(model, comments, seed, found), "fit seconds": took}

            runs.run(seed, method, {}, make)
    runs = Runs(runs.path)
    result = table(runs.frame, SCORES, {})
    print(markdown(result, SCORES))
    if not given.quick:
        result.to_csv(Path(given.out) / f"{NAME}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
