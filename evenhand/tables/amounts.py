"""Numbers as people write them: $1,234.50, 12.5 %, 1.234,50 €, (300)."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pandas as pd

_SIGNS = (
    r"[$€£¥₹₺₽₩₪฿%‰]|[A-Z]{0,3}\$|USD|EUR|GBP|CHF|JPY|INR|CNY|BRL|ZAR|SEK|NOK|DKK|PLN|CZK|kr\.?|zł|Kč|Rs\.?|percent"
)

_UNIT = re.compile(  # a word after a blank, degrees, or two small letters and more: 12A is a code
    r"^[-−]?\d[\d.,]*(?:\s+(?=[^\W\d_])|(?=\s*°)|(?=[a-zµ]{2}))\s*(°\s?[CFK]?|[^\W\d_][^\d\s]{0,9})$"
)


def amounts(texts: pd.Series, decimal: str) -> pd.Series:
    """Texts as numbers; NaN where one is none. decimal: the sign before the decimals, the other one divides thousands.
    A percent sign or a currency changes nothing: 12 % is 12."""
    found = texts.astype(str).str.strip().str.extract(_pattern(decimal))
    plain = found["symbol_1"].isna() & found["symbol_2"].isna()
    called = found["whole"].str.contains(r"\s|\..*\.", na=False)  # without a currency: a telephone, an address
    whole = found["whole"].where(~(plain & called)).str.replace(r"\D", "", regex=True)
    number = whole + "." + found["part"].fillna("0")
    negative = found["minus"].notna() | found["minus_2"].notna() | found["open"].notna()
    return pd.to_numeric(number, errors="coerce") * np.where(negative, -1.0, 1.0)


def decimal_of(texts: pd.Series) -> str:
    """The decimal sign that makes more of the texts numbers; of "1,234" and "1.234" alone, what divides thousands."""
    read = {sign: amounts(texts, sign) for sign in (".", ",")}
    point, comma = (int(read[sign].notna().sum()) for sign in (".", ","))
    if point != comma:
        return "." if point > comma else ","
    return "." if float(read["."].abs().sum()) >= float(read[","].abs().sum()) else ","


def written_amounts(sample: pd.Series) -> bool:
    """Whether nearly all of the texts are numbers, and some have a currency, a percent sign or divided thousands."""
    found = amounts(sample, decimal_of(sample)).notna()
    dressed = found & pd.to_numeric(sample, errors="coerce").isna()
    return bool(found.mean() > 0.9 and dressed.mean() > 0.1)


def unit_of(sample: pd.Series) -> str:
    """The unit in which nearly all of the texts are numbers, such as "kg" of "72 kg"; "" where there is none, or more
    than one: 5 kg and 11 lbs are no numbers to compare."""
    found = sample.str.strip().str.extract(_UNIT)[0]
    units = found.dropna().unique()
    return str(units[0]) if len(units) == 1 and found.notna().mean() > 0.9 else ""


def without_unit(values: pd.Series, unit: str) -> pd.Series:
    """72 of "72 kg"; what has no unit, or another one, stays as it is."""
    return values.map(lambda value: value.strip().removesuffix(unit) if isinstance(value, str) else value)


@cache
def _pattern(decimal: str) -> re.Pattern[str]:
    thousands = r",'’" if decimal == "." else r".'’"
    return re.compile(
        rf"^(?P<open>\()?(?P<minus>[-−])?\s*(?P<symbol_1>{_SIGNS})?\s*(?P<minus_2>[-−])?"
        rf"(?P<whole>[1-9]\d{{0,2}}(?:[{thousands}\s]\d{{3}})+|\d+)(?:[{decimal}](?P<part>\d+))?"
        rf"\s*(?P<symbol_2>{_SIGNS})?(?(open)\))$"
    )
