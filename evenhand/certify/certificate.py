"""What certify() returns: bounds on R(h) from both sides, and what may be said from them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.dual.confidence import clopper_pearson_lower, clopper_pearson_upper
from evenhand.headline import Bracketed, percent, statement_table

Array = NDArray[np.float64]
MOST_SHOWN = 60  # characters of the words of a version
BRACKETED = ("relative", "decisions", "percentile")


@dataclass(frozen=True)
class Worst:
    """The version that moves somebody most: version number ``version`` (0 is the original) of row ``row`` of the data,
    and the words of it that the original does not have, where they are texts."""

    row: int
    version: int
    moves_by: float
    words: str = ""

    def __str__(self) -> str:
        words = self.words if len(self.words) <= MOST_SHOWN else self.words[:MOST_SHOWN].rsplit(" ", 1)[0] + " ..."
        said = f" with {words!r}" if words else ""
        return f"version {self.version} of row {self.row}{said} moves most, by {self.moves_by:.3g}"


@dataclass(frozen=True, repr=False)
class Certificate:
    """R(h) between ``lower`` and ``upper`` with the stated confidence (both at once), for the population that the
    held-out people were drawn from and every x' in the bounds. ``r_low`` and ``r_high`` bracket the sample's own R.

    ``relative``, ``decisions`` and ``percentile`` say the same on scales that squeezing the scores does not change, see
    ``evenhand.headline``; each holds with the stated confidence on its own, both sides at once.
    """

    r_low: float
    r_high: float
    lower: float
    upper: float
    lam: float
    r_lam_max: float  # r_lam(x) of every x in the bounds is at most this
    delta_everywhere: float  # every single x in the bounds is (eps, delta_everywhere)-fair
    eps: float
    n: int
    confidence: float
    distance: str  # which d_Y
    each_low: Array = field(repr=False)  # (n,) d_Y within d_X <= eps is at least this for each held-out person
    each_high: Array = field(repr=False)  # (n,) and at most this
    rows: NDArray[np.intp] = field(repr=False, default_factory=lambda: np.zeros(0, dtype=np.intp))  # (n,) held out
    relative: Bracketed | None = None  # R(h) over the mean d_Y of two strangers; None: strangers are treated alike
    decisions: Bracketed | None = None  # share whose decision somebody similar could change; None: nothing is decided
    percentile: Bracketed | None = None  # percentiles of the score by which somebody similar can differ, on average
    strangers: float = float("nan")  # mean d_Y of two strangers
    yardstick: float = float("nan")  # eps over strangers' mean d_X: the relative of a model proportional to d_X
    free_share: float = float("nan")  # how much of the difference between people the metric declares free
    tuning_rows: int = 0
    seconds: float = 0.0
    over: str = "every x' within the bounds"  # which x' it is about
    copies: int = 0  # held-out rows that repeat another's text; each text is one draw and counts once
    worst: Worst | None = None  # of versions: the one that moves somebody most; None: no version moves anybody

    @property
    def gap(self) -> float:
        """r_high / r_low: 1 is exact."""
        return self.r_high / self.r_low if self.r_low > 0 else float("inf" if self.r_high > 0 else 1)

    def is_dif(self, delta: float) -> bool | Literal["undecided"]:
        """Is h (eps, delta)-distributionally individually fair? True and False hold with the stated confidence."""
        if self.upper <= delta:
            return True
        return False if self.lower > delta else "undecided"

    def share_unfair(self, tau: float) -> tuple[float, float]:
        """Bounds, at the stated confidence, on the share of people for whom some x' with d_X <= eps has d_Y > tau."""
        if len(self.each_low) != self.n:
            raise ValueError(
                "per_person=False kept nothing for each person; certify with per_person=True to count them"
            )
        alpha = (1 - self.confidence) / 2
        surely, perhaps = int((self.each_low > tau).sum()), int((self.each_high > tau).sum())
        return clopper_pearson_lower(surely, self.n, alpha), clopper_pearson_upper(perhaps, self.n, alpha)

    def __str__(self) -> str:
        return (
            f"With {self.confidence:.0%} confidence {self.lower:.3g} <= R(h) <= {self.upper:.3g} at eps={self.eps:g} "
            f"({self.distance}; n={self.n:,} held-out individuals, {self._repeated}{self.over}{self._moved})"
        )

    __repr__ = __str__

    @property
    def _repeated(self) -> str:
        if not self.copies:
            return ""
        return f"{self.copies:,} {'row that is a copy' if self.copies == 1 else 'rows that are copies'} not counted, "

    @property
    def _moved(self) -> str:
        return "" if self.worst is None else f"; {self.worst}"

    @property
    def headline(self) -> str:
        """The same on the scales that cannot be squeezed, each with the stated confidence on its own."""
        parts = []
        if self.relative is not None and np.isfinite(self.relative.upper):
            parts.append(
                f"similar people are treated at most {percent(self.relative.upper)} as differently as strangers"
            )
        if self.decisions is not None:
            parts.append(
                f"no more than {percent(self.decisions.upper)} of decisions could be changed by somebody similar"
            )
        if self.percentile is not None:
            parts.append(
                f"somebody similar is at most {self.percentile.upper:.2g} percentiles of the score away on average"
            )
        said = "; ".join(parts) if parts else "nothing can be said relative to strangers"
        return f"With {self.confidence:.0%} confidence each: {said}"

    @property
    def assumes(self) -> str:
        """What has to be true for the statement to be."""
        return (
            f"It assumes that the {self.n:,} held-out people were drawn independently from the population it is about, "
            f"that neither the training nor the {self.tuning_rows:,} tuning people are among them, and that the "
            "population lies inside the bounds; rows that were left out beforehand are not part of it"
        )

    def _repr_html_(self) -> str:
        shown = [("R(h) on the sample", f"{self.r_low:.3g} to {self.r_high:.3g}")]
        shown += [(f"R(h), with {self.confidence:.0%} confidence", f"{self.lower:.3g} to {self.upper:.3g}")]
        for name, value in (("relative to strangers", self.relative), ("decisions that could change", self.decisions)):
            if value is not None:
                shown.append((name, f"{percent(value.lower)} to {percent(value.upper)}"))
        shown += [("a model proportional to d_X would have, relative to strangers", percent(self.yardstick))]
        if self.percentile is not None:
            shown.append(("percentiles of the score", f"{self.percentile.lower:.2g} to {self.percentile.upper:.2g}"))
        shown += [("of the difference between people, declared free", percent(self.free_share))]
        return statement_table("Certificate", f"{self}. {self.assumes}.", shown)

    def to_json(self) -> str:
        """All numbers, the per-person bounds included, as JSON; what is infinite or undefined is null."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("each_low", "each_high", "rows"):
            values[name] = values[name].tolist()
        for name in BRACKETED:
            values[name] = None if values[name] is None else asdict(values[name])
        values["worst"] = None if self.worst is None else asdict(self.worst)
        said = {"gap": self.gap, "statement": str(self), "headline": self.headline, "assumes": self.assumes}
        return json.dumps(_finite({**values, **said}))

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Reads what ``to_json`` wrote."""
        values = json.loads(text)
        for name, kind in (("each_low", np.float64), ("each_high", np.float64), ("rows", np.intp)):
            values[name] = np.array(values[name], dtype=kind)
        for name in BRACKETED:
            if values[name] is not None:
                values[name] = Bracketed(**{k: np.inf if v is None else v for k, v in values[name].items()})
        for name in ("strangers", "yardstick", "free_share"):
            values[name] = float("nan") if values[name] is None else values[name]
        if values.get("worst") is not None:
            values["worst"] = Worst(**values["worst"])
        return cls(**{name: values[name] for name in cls.__dataclass_fields__ if name in values})


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return None if isinstance(value, float) and not np.isfinite(value) else value


@dataclass(frozen=True, repr=False)
class Individuals:
    """For each person: sup of d_Y over x' with d_X(x, x') <= eps lies between ``lower`` and ``upper``; ``witness`` is
    an x' that reaches ``lower``, in the units that the model sees."""

    lower: Array
    upper: Array
    witness: Array  # (n, d)
    d_x: Array  # (n,) of the witness
    eps: float
    distance: str
    frame_of: pd.DataFrame | None = field(default=None, repr=False)  # witness in the user's own units

    def __str__(self) -> str:
        return (
            f"{len(self.lower):,} individuals at eps={self.eps:g} ({self.distance}): within d_X <= eps the output "
            f"moves by {self.lower.mean():.3g} to {self.upper.mean():.3g} on average, and by at most "
            f"{self.upper.max(initial=0):.3g}"
        )

    __repr__ = __str__

    def frame(self) -> pd.DataFrame:
        """One line a person: lower, upper, d_X of the witness, and the witness."""
        head = pd.DataFrame({"lower": self.lower, "upper": self.upper, "d_X": self.d_x})
        witness = self.frame_of if self.frame_of is not None else pd.DataFrame(self.witness).add_prefix("x")
        return pd.concat([head, witness.reset_index(drop=True)], axis=1)
