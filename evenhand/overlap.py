"""Are two samples of people disjoint? A certificate from people the model has seen would say nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def refuse_overlap(held_out: Any, other: Any, name: str) -> None:
    """Raises when a held-out person is also in the other sample: by index label where both have them, else by value."""
    if other is None:
        return
    if _labelled(held_out) and _labelled(other):
        shared = int(held_out.index.isin(other.index).sum())
        how = "index labels"
        cure = "draw the held-out people apart from them"
    else:
        shared = int(_keys(held_out).isin(_keys(other)).sum())
        how = "values"
        cure = "draw them apart; if they are different people who look alike, say distinct_people=True"
    if shared:
        raise ValueError(f"{shared} of {len(held_out)} held-out rows are also in {name} (equal {how}); {cure}")


def _labelled(x: Any) -> bool:
    """A frame whose index names people: anything but the default 0, 1, 2, ..."""
    return isinstance(x, pd.DataFrame) and not (
        isinstance(x.index, pd.RangeIndex) and x.index.start == 0 and x.index.step == 1
    )


def _keys(x: Any) -> pd.Series:
    if isinstance(x, pd.DataFrame):
        frame = x.reset_index(drop=True)
        frame.columns = pd.RangeIndex(frame.shape[1])
    else:
        values = x.detach().cpu().numpy() if hasattr(x, "detach") else x
        frame = pd.DataFrame(np.asarray(values))
    numeric = frame.select_dtypes("number").columns
    frame[numeric] = frame[numeric].astype(np.float64).round(9) + 0.0
    return pd.util.hash_pandas_object(frame, index=False)
