"""What a report says, read from the files of a run: plain values and sentences, no layout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

NAMES = {"plain": "Plain", "project": "Project", "sensr": "SenSR", "fair": "Fair (SenSeI)"}
LONG_NAMES = {
    "plain": "plain training",
    "project": "the sensitive directions removed from the inputs",
    "sensr": "robust training on the worst case (SenSR)",
    "fair": "fair training (SenSeI)",
}


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
    def models(self) -> dict[str, dict[str, Any]]:
        return {name: self.metrics["models"][name] for name in NAMES if name in self.metrics["models"]}

    @property
    def question(self) -> str:
        """The broadest question that was asked: 'sex or race'."""
        joined = " or ".join(self.sensitive)
        return joined if joined in self.metrics["questions"] else str(self.metrics["questions"][0])

    def changed(self, model: str, question: str | None = None) -> dict[str, Any]:
        found: dict[str, Any] = self.metrics["models"][model]["changed"][question or self.question]
        return found

    @cached_property
    def before_in_100(self) -> float:
        return 100 * float(self.changed("plain")["share"])

    @cached_property
    def after_in_100(self) -> float:
        return 100 * float(self.changed("fair")["share"])

    @property
    def cost_points(self) -> float:
        """Points of balanced accuracy given up."""
        m = self.metrics["models"]
        return 100 * float(m["plain"]["balanced_accuracy"] - m["fair"]["balanced_accuracy"])

    @property
    def headline(self) -> str:
        return (
            f"Of a hundred people, {in_words(self.before_in_100)} would get another decision from a plainly trained "
            f"model if only their {self.question} were different. With the fair model: {in_words(self.after_in_100)}."
        )

    @property
    def cost(self) -> str:
        m = self.metrics["models"]
        plain, fair = m["plain"]["balanced_accuracy"], m["fair"]["balanced_accuracy"]
        if self.cost_points > 0.05:
            return f"The price is {self.cost_points:.1f} points of balanced accuracy: {plain:.1%} became {fair:.1%}."
        return f"It cost no balanced accuracy: {plain:.1%} before, {fair:.1%} after."

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
        c, plain = self.certificate, self.metrics["models"]["plain"]["audit"]
        words = [
            f"With {c['confidence']:.0%} confidence, the worst-case unfairness R of the fair model is at most "
            f"{number(c['upper'])} (and at least {number(c['lower'])}), at eps = {c['eps']:g}.",
            f"It holds for the population that the {c['n']:,} held-out people were drawn from, whatever other person, "
            "within the range of the data, each of them is compared with: no search is involved.",
        ]
        if c["upper"] > 0 and plain["r_low"] > c["upper"]:
            words.append(
                f"For the plain model a search already finds R of at least {number(plain['r_low'])} on a sample: "
                f"{times(plain['r_low'] / c['upper'])} times more than is possible for the fair model."
            )
        return words

    def people(self, model: str, searched: bool = False) -> list[dict[str, Any]]:
        """The people whose probability changes most with the sensitive columns, or those that the search found."""
        measured = self.metrics["models"][model]
        found: list[dict[str, Any]] = measured["audit"]["people"] if searched else measured["people"]
        return found

    def shown_columns(self, most: int = 14) -> list[str]:
        """Columns of the table of people: the sensitive ones, then those that change most often, then the others."""
        counts: dict[str, int] = {}
        for model in self.models:
            for person in [*self.people(model), *self.people(model, searched=True)]:
                for name in person["changed"]:
                    counts[name] = counts.get(name, 0) + 1
        used = [c["name"] for c in self.metrics["columns"] if c["kind"] in ("number", "category", "binary")]
        order = [*self.sensitive, *sorted(counts, key=lambda name: -counts[name]), *used]
        return list(dict.fromkeys(name for name in order if name in used))[:most]


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


def times(ratio: float) -> str:
    """A ratio in three digits: 1.45, 24.4, 9,490."""
    return f"{ratio:.3g}" if ratio < 999.5 else f"{float(f'{ratio:.3g}'):,.0f}"
