"""What a report says, read from the files of a run: plain values and sentences, no layout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evenhand.report.names import NAMES

SCORES = {"classification": ("balanced_accuracy", "balanced accuracy"), "regression": ("r2", "R2")}


@dataclass(frozen=True)
class Findings:
    """A finished run as the report sees it."""

    metrics: dict[str, Any]
    made_by: dict[str, Any]
    frontier: list[dict[str, Any]]
    certificate: dict[str, Any] | None

    @property
    def target(self) -> str:
        return str(self.metrics["schema"]["target"])

    @property
    def sensitive(self) -> list[str]:
        return [str(name) for name in self.metrics["schema"]["sensitive"]]

    @property
    def labels(self) -> list[str]:
        return [str(label) for label in self.metrics["schema"]["labels"]]

    @property
    def regression(self) -> bool:
        return bool(self.metrics["task"] == "regression")

    @property
    def binary(self) -> bool:
        return len(self.labels) == 2

    @property
    def models(self) -> dict[str, dict[str, Any]]:
        return {name: self.metrics["models"][name] for name in NAMES if name in self.metrics["models"]}

    @property
    def fair(self) -> dict[str, Any]:
        return self.models["fair"]

    @property
    def kind_words(self) -> str:
        """What the fair model is made of."""
        settings = self.metrics["settings"]
        if self.metrics["chosen"].get("kind") == "trees":
            return f"At most {settings['trees']} boosted trees whose splits are ramps"
        return f"Network with hidden layers {', '.join(map(str, settings['hidden']))}"

    @property
    def trained_eps(self) -> float:
        """The eps of the fair model's training: trees are trained for the one that is certified."""
        trees = self.metrics["chosen"].get("kind") == "trees"
        return float(self.metrics["settings"]["eps_certified" if trees else "eps"])

    @property
    def reference(self) -> str:
        """The best model without fairness: what people would use otherwise."""
        return str(self.metrics["reference"]["name"])

    @property
    def usual(self) -> dict[str, Any]:
        return self.models[self.reference]

    @property
    def question(self) -> str:
        """The broadest question that was asked: 'sex or race'."""
        joined = " or ".join(self.sensitive)
        return joined if joined in self.metrics["questions"] else str(self.metrics["questions"][0])

    @property
    def score(self) -> tuple[str, str]:
        """The key and the name of the accuracy that counts here."""
        return SCORES[self.metrics["task"]]

    def changed(self, model: str, question: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = self.metrics["models"][model]["changed"][question or self.question]
        return found

    @property
    def flipped(self) -> str:
        """The model that depends most on the sensitive columns: the one whose decisions the hundred dots show."""
        return max(self.models, key=lambda name: float(self.changed(name)["share"]))

    @cached_property
    def before_in_100(self) -> float:
        return 100 * float(self.changed(self.flipped)["share"])

    @cached_property
    def after_in_100(self) -> float:
        return 100 * float(self.changed("fair")["share"])

    @property
    def headline(self) -> str:
        """How differently similar people can be treated, relative to how strangers are."""
        ours, theirs = self.fair["audit"]["relative"], self.usual["audit"]["relative"]
        if ours is None:
            return (
                "The fair model says the same of everybody, so there is nothing to measure its treatment of "
                "similar people "
                "by: it is of no use."
            )
        words = f"A search finds similar people whom the fair model treats {as_strangers(ours, 'it treats strangers')}."
        if theirs is None:
            return words
        return (
            f"{words} For the best model without fairness ({NAMES[self.reference].lower()}) it finds "
            f"{share_of(theirs)}."
        )

    @property
    def collapsed(self) -> bool:
        """Whether the fair model hardly tells people apart: fairness by saying nothing."""
        return collapsed(self.fair)

    @property
    def cost(self) -> str:
        key, name = self.score
        usual, fair = self.usual[key], self.fair[key]
        compared = self.metrics["comparisons"][self.reference]
        low, high = (100 * edge for edge in compared["interval"])
        lost = 100 * (usual - fair)
        value = f"{usual:.1%} against {fair:.1%}" if not self.regression else f"{usual:.3f} against {fair:.3f}"
        if lost > 0.05:
            return f"The price is {lost:.1f} points (95% interval {-high:.1f} to {-low:.1f}) of {name}: {value}."
        gained = f"{-lost:.1f} points more" if lost < -0.05 else "as much"
        return f"It costs no {name}: {value}, {gained} (95% interval {low:+.1f} to {high:+.1f})."

    @property
    def price_is_kept(self) -> str:
        """Whether the promise of the options was kept on held-out people."""
        allowed = self.metrics["settings"]["max_accuracy_loss"]
        key, name = self.score
        lost = self.usual[key] - self.fair[key]
        within = self.metrics["chosen"].get("within")
        if within is None:
            return ""
        points = f"{100 * allowed:g} points"
        if not within:
            return (
                f"No weight of fairness came within the {points} that the run was allowed to give up, on "
                "validation data; this is the most accurate one that was tried."
            )
        if lost <= allowed:
            return f"That is within the {points} that the run was allowed to give up." if lost > 0.0005 else ""
        return (
            f"That is more than the {points} that the run was allowed to give up: the choice was made on "
            "validation data, and this is what came of it."
        )

    @property
    def over_each(self) -> list[dict[str, str]]:
        """Why the fair model rather than each other one, from what was measured; also where the other is better."""
        return [
            {
                "name": NAMES[name],
                "key": name,
                "is": "are" if "trees" in NAMES[name] else "is",
                "words": self._over(name),
            }
            for name in self.models
            if name != "fair"
        ]

    def _over(self, name: str) -> str:
        key, score = self.score
        other, compared = self.models[name], self.metrics["comparisons"][name]
        low, high = compared["interval"]
        lost = -100 * compared["difference"]
        if low <= 0 <= high:
            accuracy = (
                f"as accurate as far as can be told ({-lost:+.1f} points of {score} for the fair model, 95% "
                f"interval {100 * low:+.1f} to {100 * high:+.1f})"
            )
        elif lost > 0:
            accuracy = (
                f"more accurate by {lost:.1f} points of {score} (95% interval {-100 * high:.1f} to {-100 * low:.1f})"
            )
        else:
            accuracy = (
                f"less accurate by {-lost:.1f} points of {score} (95% interval {100 * low:.1f} to {100 * high:.1f})"
            )
        theirs, ours = other["audit"]["relative"], self.fair["audit"]["relative"]
        if theirs is None or ours is None:
            return f"{accuracy}; its scores do not tell people apart."
        flips = self.changed(name)["share"]
        results = "predictions" if self.regression else "decisions"
        depends = f", and {flips:.1%} of its {results} depend on {self.question}" if flips > 0 else ""
        if theirs > ours:
            fairness = (
                f"but the search finds similar people treated {as_strangers(theirs)}, against {share_of(ours)} "
                f"with the fair model{depends}"
            )
            if lost <= 0 and not low <= 0 <= high:
                fairness = "and " + fairness.removeprefix("but ")
            return f"{accuracy}, {fairness}."
        return (
            f"{accuracy}, and no less fair by what the search finds ({share_of(theirs)} of how strangers are "
            f"treated, against {share_of(ours)}){depends}: consider using it instead."
        )

    @property
    def certified(self) -> bool:
        return self.certificate is not None and "upper" in self.certificate

    @property
    def certificate_words(self) -> list[str]:
        """The certificate in plain sentences."""
        if self.certificate is None:
            return [
                "No certificate was asked for in this run, so nothing is proved about people who were not looked at."
            ]
        if not self.certified:
            return [
                f"No certificate could be given: {self.certificate.get('refused', 'no reason was recorded')}",
                "The numbers of the audit below are lower bounds: they can show unfairness, never its absence.",
            ]
        c = self.certificate
        left_out = self.metrics["rows"]["held_out"] - self.metrics["held_out_inside"]
        words = [f"{c['headline']}."] if c.get("headline") else []
        words += [
            f"With {c['confidence']:.0%} confidence, the worst-case unfairness R of the fair model is at most "
            f"{number(c['upper'])} (and at least {number(c['lower'])}), at eps = {c['eps']:g}.",
            f"It holds for the population that the {c['n']:,} held-out people were drawn from, whatever other person, "
            "within the range of the data, each of them is compared with: no search is involved.",
            "It assumes that the rows are independent draws from that population and that its people lie "
            "within the range "
            "of the training data"
            + (
                f"; {left_out:,} held-out rows with a category that training did not have were left out."
                if left_out
                else "."
            ),
        ]
        return words

    @property
    def threshold_words(self) -> str:
        """From which probability on it is decided, and why there."""
        t = self.fair.get("threshold")
        if t is None:
            return "The decision is the class with the largest score, each class counting equally."
        given = self.metrics["settings"].get("threshold")
        label = self.labels[-1]
        if given is not None:
            return f"{label!r} is decided from a probability of {given:g} on, as was asked for."
        return (
            f"{label!r} is decided from a probability of {t:.3f} on. There a mistake about each class counts "
            "equally, however "
            "rare the class is; with another balance of costs another threshold is right, and the table "
            "below says what it "
            "would cost."
        )

    @property
    def next_steps(self) -> list[str]:
        """What to do with these results."""
        steps = []
        if self.collapsed:
            steps.append(
                "Do not use this model: its scores hardly tell people apart. Learn similarity for fewer "
                "attributes, or from more columns."
            )
        if self.metrics["free_share"] > 1 / 3:
            steps.append(
                f"Look at who counts as similar: {self.metrics['free_share']:.0%} of the differences between "
                "people are declared free."
            )
        if self.metrics["chosen"].get("within") is False:
            learned = " and ".join(str(proxy["name"]) for proxy in self.metrics["proxies"])
            free = f"What predicts {learned} counts as no difference here: if that goes too far, " if learned else ""
            steps.append(
                f"Look at the price: no weight of fairness that was tried came as close to "
                f"{NAMES[self.reference].lower()} as was asked. {free}{'learn' if free else 'Learn'} similarity for "
                "fewer attributes, try smaller weights, or accept that price knowingly."
            )
        better = [o["name"] for o in self.over_each if "consider using it" in o["words"]]
        if better:
            steps.append(f"Compare with {', '.join(better)}: no less fair by what was found here, and simpler.")
        for attribute, group in self.fair["groups"].items():
            found = group.get("four_fifths")
            if found and found["verdict"] != "met":
                word = "is below four fifths" if found["verdict"] == "not met" else "may be below four fifths"
                steps.append(
                    f"The selection rate of {attribute} = {found['lowest']} {word} of that of "
                    f"{found['highest']}: find out why before the model is used."
                )
            small = [r["group"] for r in group["rates"] if r["small"]]
            if small:
                steps.append(
                    f"Nothing can be said about {attribute} = {', '.join(small[:6])}: too few people. Collect "
                    "more of them."
                )
        leaks = [c["name"] for c in self.metrics["columns"] if "alone predicts" in c["note"]]
        if leaks:
            steps.append(
                f"Check when {', '.join(leaks)} is recorded: by itself it predicts the target, so it was left out."
            )
        if not self.certified:
            steps.append("Ask for a certificate before relying on fairness towards people who were not looked at.")
        steps.append(
            "Check the assumptions with those who know the data: the labels, the notion of similarity, the "
            "price of a mistake."
        )
        return steps

    def people(self, model: str, searched: bool = False) -> list[dict[str, Any]]:
        """The people whose score changes most with the sensitive columns, or those that the search found."""
        measured = self.metrics["models"][model]
        found: list[dict[str, Any]] = measured["audit"]["people"] if searched else measured["people"]
        return found

    @property
    def lists(self) -> list[tuple[str, bool, str]]:
        """(model, searched, title) of the lists of people that are not empty."""
        wanted = [(self.reference, True), ("fair", True), (self.flipped, False)]
        return [
            (name, searched, NAMES[name] + ("" if searched else f": only {self.question} altered"))
            for name, searched in dict.fromkeys(wanted)
            if self.people(name, searched)
        ]

    def shown_columns(self, most: int = 14) -> list[str]:
        """Columns of the table of people: those that change most often, then the others where records are shown."""
        counts: dict[str, int] = {}
        records = False
        for name, searched, _ in self.lists:
            for person in self.people(name, searched):
                records = records or bool(person["record"])
                for column in person["changed"]:
                    counts[column] = counts.get(column, 0) + 1
        used = [c["name"] for c in self.metrics["columns"] if c["kind"] in ("number", "category", "binary")]
        order = sorted(counts, key=lambda name: -counts[name]) + (used if records else [])
        return list(dict.fromkeys(name for name in order if name in used))[:most]


def collapsed(m: dict[str, Any]) -> bool:
    """Whether the scores of a model hardly tell people apart, by what was measured on held-out people: no
    better than chance, or not surely so."""
    if "r2" in m:
        return bool(m["r2"] < 0.05 or m["intervals"]["r2"][0] <= 0)
    interval = m["intervals"].get("auc")  # of more than two classes there is none
    return bool(m["auc"] is None or m["auc"] < 0.55 or (interval is not None and interval[0] <= 0.5))


def line_of(m: dict[str, Any]) -> dict[str, str]:
    """One model in a line of a table: head -> cell."""
    if "r2" in m:
        line = {"R2": f"{m['r2']:.3f}", "abs. error": f"{m['mae']:.4g}"}
    else:
        line = {
            "bal. acc.": f"{m['balanced_accuracy']:.3f}",
            "AUC": "-" if m["auc"] is None else f"{m['auc']:.3f}",
            "log loss": f"{m['log_loss']:.3f}",
        }
    line |= {f"% change by {q}": f"{100 * c['share']:.1f}" for q, c in m["changed"].items()}
    relative = m["audit"]["relative"]
    line["similar/strangers"] = "-" if relative is None else f"{relative:.4f}"
    line["R found"] = number(m["audit"]["r_low"])
    return line


def as_strangers(value: float, how: str = "strangers are") -> str:
    """The same in a sentence: as differently as 53% of how strangers are; 1.8 times as differently as strangers are."""
    if value > 1.5:
        return f"{share_of(value)} as differently as {how}"
    return f"as differently as {share_of(value)} of how {how}"


def share_of(value: float) -> str:
    """A ratio as a share in words: 0.34%, 53%, 1.8 times."""
    if value > 1.5:
        return f"{value:.2g} times"
    if value >= 0.095:
        return f"{100 * value:.0f}%"
    return f"{100 * value:.2g}%" if value >= 1e-5 else "less than 0.001%"


def in_100(share: float) -> str:
    """A share of a hundred as one would say it."""
    if share == 0:
        return "none"
    if share < 0.5:
        return "fewer than one" if share < 0.05 else f"{share:.1f}"
    return f"{share:.0f}" if share >= 9.95 else f"{share:.1f}".removesuffix(".0")


def in_words(share: float) -> str:
    """The same in a sentence: nobody is a tenth of a person."""
    if 0 < share < 0.5:
        return f"fewer than one ({share:.2g} on average)" if share >= 0.05 else "fewer than one"
    return in_100(share)


def number(value: float) -> str:
    """Three digits, without an exponent where it can be helped."""
    return f"{value:.3g}" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"


def compact(value: Any) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
