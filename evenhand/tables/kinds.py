"""What kind a column is, by looking at its values: a number, a category, or nothing that a model should learn from."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from evenhand.tables.amounts import amounts, decimal_of, unit_of, without_unit, written_amounts
from evenhand.tables.delimited import LEADING_ZERO
from evenhand.tables.errors import TableError

MISSING_CATEGORY = "(missing)"
MAX_CATEGORIES = 30  # rarer ones share a column
IGNORED, CONSTANT, EMPTY = "you asked for it", "constant: the same value in every row", "every value is missing"
SAMPLE = 2000  # values looked at to recognise dates, addresses and the like
USED = ("number", "binary", "category")
AMOUNTS = "money, percent or thousands, written as text"
LARGEST = 1e37  # a number beyond it is no measurement, and float32 ends at 3e38

_DATE_LIKE = re.compile(
    r"^\s*(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}[-. ]?[A-Za-z]{3,9}[-. ,]*\d{2,4}|[A-Za-z]{3,9}\.? \d{1,2},? \d{4})"
)
_EMAIL = re.compile(r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$")
_PHONE = re.compile(r"^(\+|00?|\()?\d[\d\s().\-/]{5,17}\d$")
_ADDRESS = re.compile(r"^(https?://|www\.)\S+$|^\d{1,3}(\.\d{1,3}){3}$")
_TWO_NAMES = re.compile(r"^[A-ZÀ-Ž][\w'’.-]+,? ([A-ZÀ-Ž][\w'’.-]*\.? ?){1,3}$|^[a-z'-]+, [a-z'-]+$")
_NAME_OF_NAMES = re.compile(
    r"^((first|last|sur|fore|given|family|full|middle|maiden|user|person|patient|applicant|customer|employee|student|"
    r"client|borrower|defendant|member|owner|holder|tenant|contact|guardian|mother|father|spouse|maiden|legal)[ _.-]*)*"
    r"names?$|^(first|last|surname|nachname|vorname|nom|pr[eé]nom|nombre|apellidos?|cognome|nome|imi[eę]|nazwisko)$"
)
_ENDS_IN_NAME = re.compile(r"(^|[ _.-])names?$")
_NAME_OF_PHONES = re.compile(r"(^|[ _.-])(phone|telephone|tel|mobile|fax|cell)(?=$|[ _.-])")
_NAME_OF_PLACES = re.compile(
    r"(^|[ _.-])(address|addr|street|adresse|anschrift|stra(ß|ss)e|rue|calle|direcci[oó]n|indirizzo|adres|"
    r"ulica)(?=$|[ _.-]|\d)"
)
_NAME_OF_CODES = re.compile(r"(^|[ _.-])((re|zip|post|postal)?codes?|zip|postcodes?)($|[ _.-])")
_NAME_OF_WEIGHTS = re.compile(
    r"(^|[ _.-])(instance|sample|sampling|survey|person|household|case|final|frequency|replicate)[ _.-]?"
    r"(weights?|weighting|wt|wgt)$|^(fnlwgt|perwt|hhwt|pwgtp|wgtp|marsupwt)$"
)
_NAME_OF_IDS = re.compile(r"(^|[ _.-])(ids?|uuid|guid|ssn|nr|number|key|index|idx|case|ref|account|iban|passport)$")


@dataclass(frozen=True)
class Column:
    """One column: its kind (number, category, binary, date, dropped), what was noticed, and whether it is personal
    data such as a name, an e-mail address or a telephone number. ``decimal``: the decimal sign of a number that is
    written as text, such as $1,234.50; ``unit``: what it ends in, as in 72 kg."""

    name: str
    kind: str
    note: str = ""
    personal: bool = False
    decimal: str = ""
    unit: str = ""

    @property
    def doubtful(self) -> bool:
        """Whether it was left out by a guess, which the user may know better."""
        return self.kind == "dropped" and self.note not in (IGNORED, CONSTANT, EMPTY)


def infer(
    values: pd.Series, name: str, sensitive: bool = False, keep_dates: bool = False, keep: bool = False
) -> Column:
    """The kind of one column. Sensitive columns and those that the user wants kept are never taken for identifiers."""
    present = values.dropna()
    n_missing = len(values) - len(present)
    missing = f"{n_missing:,} missing ({n_missing / len(values):.0%})" if n_missing else ""
    if len(present) == 0:
        return Column(name, "dropped", EMPTY)
    trusted = sensitive or keep
    if pd.api.types.is_datetime64_any_dtype(values):
        return Column(name, "number", "date as days") if keep_dates else Column(name, "date", "a date")
    if pd.api.types.is_timedelta64_dtype(values):
        return Column(name, "number", "; ".join(["a duration, in days", *([missing] if missing else [])]))
    distinct = int(present.nunique())
    if distinct == 1 and n_missing:  # "yes" or nothing: a common way to write a yes
        return Column(name, "binary", f"one value or none: {missing}")
    if distinct == 1:
        return Column(name, "dropped", CONSTANT)
    if distinct == 2 and not n_missing:
        return Column(name, "binary")
    if pd.api.types.is_bool_dtype(present):  # yes, no, or not known
        return Column(name, "category", missing)
    if pd.api.types.is_numeric_dtype(values):
        if bool((present.astype(np.float64).abs() > LARGEST).all()):
            return Column(name, "dropped", f"every value is infinite or beyond {LARGEST:g}; give it in a larger unit")
        if (sensitive and distinct <= 10) or _coded(present, name, distinct):
            return Column(name, "category", _of_many(distinct, missing))
        found = None if trusted else _numbered(present, name, distinct, len(values))
        return found or Column(name, "number", _beyond(present) or missing)
    texts = present.map(text_of)
    sample = texts.iloc[:: max(1, len(texts) // SAMPLE)]
    if not sensitive and _share(sample, _DATE_LIKE) > 0.95 and parsed_dates(sample).notna().mean() > 0.95:
        return Column(name, "number", "date as days") if keep_dates else Column(name, "date", "a date")
    written = not sensitive and _share(sample, _ADDRESS) < 0.8 and written_amounts(sample)
    unit = "" if sensitive or written else unit_of(sample)
    if written or unit:
        decimal = decimal_of(without_unit(sample, unit))
        odd = int(amounts(without_unit(texts, unit), decimal).isna().sum())
        notes = [f"numbers in {unit}, written as text" if unit else AMOUNTS]
        notes += [f"{odd:,} values that are not numbers count as missing"] if odd else []
        return Column(name, "number", "; ".join([*notes, *([missing] if missing else [])]), decimal=decimal, unit=unit)
    if not trusted and (found := _personal(texts, sample, name, distinct)) is not None:
        return found
    numeric = pd.to_numeric(sample, errors="coerce").notna().mean()
    if numeric > 0.9 and not sensitive and not sample.str.match(LEADING_ZERO).any():
        numbers = pd.to_numeric(texts, errors="coerce")
        counted = None if keep else _numbered(numbers.dropna(), name, int(numbers.nunique()), len(values))
        if counted is not None:
            return counted
        odd = int(numbers.isna().sum())
        return Column(name, "number", f"{odd:,} values that are not numbers count as missing" if odd else missing)
    if distinct > 50 and distinct > 0.5 * len(present) and not trusted:  # most rows have a text of their own
        note = f"{distinct:,} different texts in {len(present):,} rows: an identifier or free text"
        return Column(name, "dropped", note, personal=True)
    return Column(name, "category", _of_many(distinct, missing))


def _of_many(distinct: int, missing: str) -> str:
    """What is noted of a category: that rare ones share a column, and how many are missing."""
    notes = [f"{distinct:,} categories, the {MAX_CATEGORIES - 1} most frequent kept apart"]
    return "; ".join([*(notes if distinct > MAX_CATEGORIES else []), *([missing] if missing else [])])


def _coded(present: pd.Series, name: str, distinct: int) -> bool:
    """Whole numbers that are called codes: 3 is no more than 2, it is another thing."""
    return bool(_NAME_OF_CODES.search(_words(name))) and distinct <= len(present) / 2 and bool((present % 1 == 0).all())


def _beyond(present: pd.Series) -> str:
    """What is noted of numbers that are none."""
    count = int((present.astype(np.float64).abs() > LARGEST).sum())
    return f"{count:,} values that are infinite or beyond {LARGEST:g} count as missing" if count else ""


def _numbered(present: pd.Series, name: str, distinct: int, of: int) -> Column | None:
    """Numbers that name rows instead of measuring them (every row its own, in any order), or that count people; ``of``:
    rows of the table."""
    n = len(present)
    if _NAME_OF_WEIGHTS.search(_words(name)):
        return Column(name, "dropped", "by its name it says how many people a row stands for, nothing about them")
    if n <= 50 or not bool((present % 1 == 0).all()):
        return None
    dense = float(present.max()) - float(present.min()) < 3 * n
    if distinct == n and dense:
        rows = "each row: it counts the rows" if n == of else f"each of {n:,} rows that have one: an identifier"
        return Column(name, "dropped", f"{distinct:,} different whole numbers, one for {rows}", True)
    folded = name.casefold()
    if _NAME_OF_PHONES.search(folded) and distinct > 0.5 * n:
        return Column(name, "dropped", "telephone numbers", True)
    if distinct > 0.95 * n and _NAME_OF_IDS.search(_words(name)):
        return Column(name, "dropped", f"{distinct:,} different whole numbers in {n:,} rows: an identifier", True)
    return None


def _personal(texts: pd.Series, sample: pd.Series, name: str, distinct: int) -> Column | None:
    """Personal data and free text."""
    words, many = _words(name), distinct > 30
    if _share(sample, _EMAIL) > 0.8:
        return Column(name, "dropped", "e-mail addresses", True)
    if _share(sample, _ADDRESS) > 0.8 and many:
        return Column(name, "dropped", "addresses on the internet", True)
    numbers = pd.to_numeric(sample, errors="coerce").notna().mean() < 0.9 or bool(_NAME_OF_PHONES.search(words))
    if _share(sample, _PHONE) > 0.8 and numbers and distinct > 0.5 * len(texts):
        return Column(name, "dropped", "telephone numbers", True)
    by_name = _NAME_OF_NAMES.search(words) is not None and distinct > 10
    looks = many and _share(sample, _TWO_NAMES) > 0.9
    if by_name or (looks and (distinct > 0.5 * len(texts) or _ENDS_IN_NAME.search(words))):
        return Column(name, "dropped", "names of people", True)
    if many and _NAME_OF_PLACES.search(words):
        return Column(name, "dropped", "postal addresses", True)
    if sample.map(lambda text: len(text.split())).mean() >= 6 and distinct > 0.3 * len(texts):
        return Column(name, "dropped", "free text", True)
    return None


def _words(name: str) -> str:
    """customerID, Customer-Id and customer_id alike."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold()


def _share(sample: pd.Series, pattern: re.Pattern[str]) -> float:
    return float(sample.str.strip().str.match(pattern).mean())


def numbers_of(values: pd.Series, name: str, decimal: str = "", unit: str = "") -> pd.Series:
    """The column as numbers; what is none is missing, unless none is. decimal: the decimal sign of $1,234.50 and the
    like, as training had it; by default what fits these values. unit: what may stand behind each number."""
    if pd.api.types.is_datetime64_any_dtype(values):
        return _days(values)
    if pd.api.types.is_timedelta64_dtype(values):
        return pd.Series(values.dt.total_seconds() / 86_400)
    if pd.api.types.is_numeric_dtype(values):
        return _measured(values)
    values = without_unit(values, unit) if unit else values
    numbers = pd.to_numeric(values, errors="coerce")
    odd = values.notna() & numbers.isna()
    if decimal:  # "1.234" among "1.234,50" is a thousand, though it reads as a number
        written = values.map(lambda value: isinstance(value, str))
        numbers = amounts(values, decimal).where(written, numbers)
    elif odd.any():
        numbers = numbers.fillna(amounts(values[odd], decimal_of(values[odd])))
    texts = int(values.notna().sum() - numbers.notna().sum())
    if numbers.notna().sum() == 0 and texts:  # a date that was asked to be kept
        dates = parsed_dates(values.astype(str))
        if dates.notna().any():
            return _days(dates)
    if texts > 0.1 * len(values):  # as many as `infer` lets pass
        raise TableError(
            f"column {name!r} held numbers in training but holds text in {texts:,} of {len(values):,} rows; "
            "mend it, or "
            "train again with this column as it is now"
        )
    return _measured(numbers)


def _measured(numbers: pd.Series) -> pd.Series:
    """Infinite and absurdly large numbers are missing."""
    values = numbers.astype(np.float64)
    return values.where(values.abs() <= LARGEST)


def categories_of(values: pd.Series) -> pd.Series:
    """Texts, the same for 1, 1.0 and "1", with a category for missing values."""
    known = {value: text_of(value) for value in pd.unique(values) if not pd.isna(value)}
    mapped = values.map(known).astype(object)
    return mapped.where(values.notna(), MISSING_CATEGORY)


def text_of(value: Any) -> str:
    """A cell as text: 1, 1.0 and "1" are the same category."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def parsed_dates(texts: pd.Series) -> pd.Series:
    """Dates, day or month first, whichever makes more of them; NaT where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        readings = [pd.to_datetime(texts, errors="coerce", dayfirst=dayfirst) for dayfirst in (False, True)]
        readings.append(pd.to_datetime(texts, errors="coerce", format="mixed"))
    return max(readings, key=lambda dates: int(dates.notna().sum()))


def _days(dates: pd.Series) -> pd.Series:
    return (dates - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
