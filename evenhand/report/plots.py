"""Charts: the trade-off of a sweep, decision surfaces, the course of a training, who is treated how unfairly.

Every function returns an Altair chart; ``save(chart, path)`` writes HTML that needs no network, SVG or PNG. Needs
``pip install evenhand[report]``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import altair

__all__ = ["distribution", "history", "save", "surfaces", "trade_off", "worst_pairs"]

# Okabe and Ito: told apart also by those who see fewer colours.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555"]
WIDTH, HEIGHT = 460, 300
PLACES = {  # of a label beside its point: align and baseline, and the shift in pixels
    ("left", "top"): (7, 5),
    ("right", "bottom"): (-7, -5),
    ("left", "bottom"): (7, -5),
    ("right", "top"): (-7, 5),
}


def trade_off(
    table: pd.DataFrame | Mapping[str, pd.DataFrame],
    *,
    accuracy: str = "accuracy",
    unfairness: str = "unfairness",
    title: str = "Accuracy against unfairness",
    log: bool = False,
) -> altair.LayerChart:
    """Each setting of a sweep with its interval; the Pareto front is filled and joined by a line.

    table: ``Frontier.table``, or name of a method -> table. Hover shows the parameters. ``log`` for unfairness that
    spans orders of magnitude.
    """
    alt = _altair()
    points = _joined(table)
    scores = {accuracy, unfairness}
    hidden = {f"{name}_{end}" for name in scores for end in ("low", "high")} | {"front", "folds", "method"}
    parameters = [name for name in points.columns if name not in hidden | scores and not _is_score(name, points)]
    points["on the front"] = points["front"].astype(bool) if "front" in points else True
    points["parameters"] = [_settings(row, parameters) for _, row in points.iterrows()]
    several = points["method"].nunique() > 1
    colour = alt.Color(
        "method:N",
        title=None,
        scale=alt.Scale(domain=list(dict.fromkeys(points["method"])), range=PALETTE),
        legend=alt.Legend(orient="top", symbolType="circle", symbolOpacity=1) if several else None,
    )
    if log:
        points = points[points[unfairness] > 0].copy()
    kind = alt.Scale(type="log", nice=False, padding=24) if log else alt.Scale(zero=False, nice=True)
    ticks = alt.Axis(format="~g", values=_one_two_five(points[unfairness])) if log else alt.Axis(tickCount=6)
    x = alt.X(f"{unfairness}:Q", title=f"{unfairness} (less is better)", scale=kind, axis=ticks)
    y = alt.Y(f"{accuracy}:Q", title=f"{accuracy} (more is better)", scale=alt.Scale(zero=False, nice=True))
    hover = ["method", "parameters", alt.Tooltip(accuracy, format=".4f"), alt.Tooltip(unfairness, format=".4g")]
    for name in (accuracy, unfairness):
        if {f"{name}_low", f"{name}_high"} <= set(points):
            hover += [alt.Tooltip(f"{name}_{end}", format=".4g") for end in ("low", "high")]
    base = alt.Chart(points)
    layers = []
    for name, channel in ((accuracy, "y"), (unfairness, "x")):
        if {f"{name}_low", f"{name}_high"} <= set(points) and points[f"{name}_low"].notna().any():
            known = points.dropna(subset=[f"{name}_low"]).copy()
            if name == unfairness:  # no score of unfairness is negative, whatever the interval says
                known[f"{name}_low"] = known[f"{name}_low"].clip(lower=known[name].min() / 2 if log else 0)
            ends = {channel: (x if channel == "x" else y)}
            ends[channel] = ends[channel].copy()
            ends[channel].shorthand = f"{name}_low:Q"
            other = {"x": x, "y": y} | ends | {f"{channel}2": f"{name}_high:Q"}
            layers.append(
                alt.Chart(known).mark_rule(opacity=0.35, strokeWidth=1.5, clip=True).encode(color=colour, **other)
            )
    front = base.transform_filter(alt.datum["on the front"])
    layers.append(front.mark_line(strokeWidth=2, interpolate="step-after").encode(x=x, y=y, color=colour))
    layers.append(
        base.mark_point(size=90, opacity=1, strokeWidth=2).encode(
            x=x,
            y=y,
            color=colour,
            fill=alt.condition(alt.datum["on the front"], colour, alt.value("white")),
            tooltip=hover,
        )
    )
    pixels = _pixels(np.log(points[unfairness]) if log else points[unfairness], points[accuracy])
    places = _label_places(pixels, list(points["parameters"].where(points["on the front"], "")))
    for (align, baseline), (dx, dy) in PLACES.items():
        label = points[[place == (align, baseline) for place in places]]
        if len(label):
            text = alt.Chart(label).mark_text(align=align, baseline=baseline, dx=dx, dy=dy, fontSize=10, color="#333")
            layers.append(text.encode(x=x, y=y, text="parameters:N", tooltip=hover))
    result: altair.LayerChart = _finished(
        alt.layer(*layers).properties(width=WIDTH, height=HEIGHT), title, "Filled: on the Pareto front."
    )
    return result


def history(
    records: pd.DataFrame | Mapping[str, pd.DataFrame],
    *,
    quantities: Sequence[str] | None = None,
    title: str = "Course of training",
) -> altair.ConcatChart:
    """Loss, lam, d_X, d_Y ... over the steps, one small chart each: ``estimator.history_``, or name -> history."""
    alt = _altair()
    frame = _joined(records)
    known = [name for name in ("objective", "loss", "regularizer", "d_y", "d_x", "lam", "validation") if name in frame]
    shown = list(quantities) if quantities is not None else known
    missing = [name for name in shown if name not in frame]
    if missing or not shown:
        raise ValueError(f"the history has no {missing or 'known quantities'}; it has {list(frame.columns)}")
    several = frame["method"].nunique() > 1
    names = {"d_y": "mean d_Y", "d_x": "mean d_X"}
    charts = [
        alt.Chart(frame[["step", "method", name]].dropna())
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                "step:Q",
                title="step" if name == shown[-1] or i >= len(shown) - 2 else None,
                axis=alt.Axis(format="d", tickCount=4, labelFlush=True),
            ),
            y=alt.Y(f"{name}:Q", title=None, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4, format="~g")),
            color=alt.Color(
                "method:N",
                title=None,
                sort=list(dict.fromkeys(frame["method"])),
                scale=alt.Scale(domain=list(dict.fromkeys(frame["method"])), range=PALETTE),
                legend=alt.Legend(orient="top") if several else None,
            ),
            tooltip=["method", "step", alt.Tooltip(name, format=".4g")],
        )
        .properties(width=250, height=110, title=alt.Title(names.get(name, name), fontSize=12, anchor="start"))
        for i, name in enumerate(shown)
    ]
    result: altair.ConcatChart = _finished(alt.concat(*charts, columns=2, spacing=18), title)
    return result


def distribution(
    d_y: Mapping[str, Any] | Any,
    *,
    tau: float | None = None,
    xlabel: str = "d_Y between an individual and its worst case",
    title: str = "How differently are similar people treated?",
) -> altair.LayerChart:
    """Share of individuals whose d_Y is larger than a value, a line a model: the lower, the fairer.

    d_y: values of the individuals, or name of a model -> values. tau marks a threshold.
    """
    alt = _altair()
    models = d_y if isinstance(d_y, Mapping) else {"model": d_y}
    parts = []
    for name, values in models.items():
        array = np.sort(np.asarray(values, dtype=np.float64).ravel())
        if len(array) == 0 or not np.isfinite(array).all():
            raise ValueError(f"d_y of {name!r} must hold finite numbers, at least one")
        keep = np.unique(np.linspace(0, len(array) - 1, 400).round().astype(int))  # a line needs no more
        share = 1 - (np.arange(len(array)) + 1) / len(array)
        parts.append(pd.DataFrame({"model": name, "d_y": array[keep], "share": share[keep]}))
        parts.append(pd.DataFrame({"model": name, "d_y": [0.0], "share": [float((array > 0).mean())]}))
    frame = pd.concat(parts).sort_values(["model", "d_y"], kind="stable")
    largest = float(np.quantile(np.concatenate([np.ravel(v) for v in models.values()]), 0.995)) or 1.0
    layers = [
        alt.Chart(frame)
        .mark_line(strokeWidth=2.5, interpolate="step-after", clip=True)
        .encode(
            x=alt.X("d_y:Q", title=xlabel, scale=alt.Scale(domain=[0, largest * 1.02], nice=False)),
            y=alt.Y(
                "share:Q", title="share of individuals above", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])
            ),
            color=alt.Color(
                "model:N",
                title=None,
                sort=list(models),
                scale=alt.Scale(domain=list(models), range=PALETTE),
                legend=alt.Legend(orient="top") if len(models) > 1 else None,
            ),
            tooltip=["model", alt.Tooltip("d_y", format=".4g"), alt.Tooltip("share", format=".1%")],
        )
    ]
    if tau is not None:
        mark = pd.DataFrame({"d_y": [tau], "label": [f"tau = {tau:g}"]})
        layers.append(alt.Chart(mark).mark_rule(strokeDash=[4, 3], color="#333").encode(x="d_y:Q"))
        layers.append(
            alt.Chart(mark)
            .mark_text(align="left", dx=4, y=8, fontSize=11, color="#333")
            .encode(x="d_y:Q", text="label")
        )
    result: altair.LayerChart = _finished(alt.layer(*layers).properties(width=WIDTH, height=HEIGHT * 0.85), title)
    return result


def surfaces(
    models: Mapping[str, Callable[[np.ndarray], np.ndarray]],
    X: Any = None,
    y: Any = None,
    *,
    domain: tuple[float, float] = (-1.0, 1.0),
    axes: tuple[str, str] = ("x1", "x2"),
    title: str = "Decision surfaces",
    pixels: int = 48,
    columns: int = 4,
) -> altair.ConcatChart:
    """P(class 1) of models of two features over a square, side by side; the line is the boundary.

    models: title -> function of points (n, 2) that gives the probability. X (n, 2) and y: points to show.
    """
    alt = _altair()
    edges = np.linspace(*domain, pixels + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    square = np.stack(np.meshgrid(middle, middle, indexing="ij"), axis=-1).reshape(-1, 2)
    x1, y1 = (axis.ravel() for axis in np.meshgrid(edges[:-1], edges[:-1], indexing="ij"))
    x2, y2 = (axis.ravel() for axis in np.meshgrid(edges[1:], edges[1:], indexing="ij"))
    scale = alt.Scale(domain=list(domain), nice=False)
    ticks = [domain[0], sum(domain) / 2, domain[1]]
    charts = []
    for i, (name, probability) in enumerate(models.items()):
        p = np.asarray(probability(square), dtype=np.float64).reshape(-1)
        cells = pd.DataFrame({"x": x1, "x2": x2, "y": y1, "y2": y2, "p": p}).round(4)
        first = i % columns == 0
        x = alt.X("x:Q", scale=scale, title=axes[0], axis=alt.Axis(values=ticks, format="~g", grid=False))
        up = alt.Y(
            "y:Q",
            scale=scale,
            title=axes[1] if first else None,
            axis=alt.Axis(values=ticks, format="~g", grid=False, labels=first, ticks=first, labelFlush=True),
        )
        shade = alt.Color(
            "p:Q",
            title="P(class 1)",
            scale=alt.Scale(domain=[0, 1], scheme="blueorange"),
            legend=alt.Legend(values=[0, 0.5, 1], format=".1f", gradientLength=120),
        )
        layers = [alt.Chart(cells).mark_rect(aria=False).encode(x=x, x2="x2", y=up, y2="y2", color=shade)]
        line = _level(p.reshape(pixels, pixels), middle)
        if len(line):
            rule = alt.Chart(line).mark_rule(strokeWidth=2, color="black", aria=False)
            layers.append(rule.encode(x=x, x2="x2", y=up, y2="y2"))
        if X is not None:
            points = pd.DataFrame(
                {"x": np.asarray(X)[:150, 0], "y": np.asarray(X)[:150, 1], "label": np.asarray(y)[:150]}
            )
            fill = alt.Fill("label:N", scale=alt.Scale(range=["#1f4e79", "#a34a00"]), legend=None)
            dots = alt.Chart(points).mark_circle(size=16, opacity=1, stroke="white", strokeWidth=0.6, aria=False)
            layers.append(dots.encode(x=x, y=up, fill=fill))
        charts.append(alt.layer(*layers).properties(width=168, height=168, title=alt.Title(name, fontSize=13)))
    result: altair.ConcatChart = _finished(alt.concat(*charts, columns=columns, spacing=14), title)
    return result


def worst_pairs(
    pairs: pd.DataFrame,
    *,
    score: str = "p",
    score_worst: str = "p_worst",
    label: str | None = None,
    changed: str | None = None,
    title: str = "The most differently treated",
    xlabel: str = "probability",
) -> altair.LayerChart:
    """Each individual and its worst case on one line: where the model puts the one and the other.

    pairs: one row a pair, with the two scores; ``label`` names the individual (default: the index), ``changed`` says
    what differs between the two.
    """
    alt = _altair()
    frame = pairs.reset_index(drop=label is not None).copy()
    frame["individual"] = frame[label if label is not None else frame.columns[0]].astype(str)
    if frame["individual"].duplicated().any():
        frame["individual"] = [f"{name} ({i + 1})" for i, name in enumerate(frame["individual"])]
    order = list(frame["individual"])
    y = alt.Y(
        "individual:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, grid=True, gridColor="#eee", ticks=False)
    )
    hover = ["individual", alt.Tooltip(score, format=".3f"), alt.Tooltip(score_worst, format=".3f")]
    hover += [changed] if changed is not None else []
    both = [score, score_worst]
    low, high = float(frame[both].min().min()), float(frame[both].max().max())
    domain = [0.0, 1.0] if low >= 0 and high <= 1 else [low - 0.05 * (high - low), high + 0.05 * (high - low)]
    x = alt.X(f"{score}:Q", title=xlabel, scale=alt.Scale(domain=domain, nice=False))
    line = (
        alt.Chart(frame).mark_rule(strokeWidth=3, color="#bbb").encode(y=y, x=x, x2=f"{score_worst}:Q", tooltip=hover)
    )
    kept = ["individual", *([changed] if changed is not None else [])]
    long = pd.concat(
        [
            frame[kept].assign(case="individual as it is", score_shown=frame[score]),
            frame[kept].assign(case="its worst similar case", score_shown=frame[score_worst]),
        ]
    )
    dots = (
        alt.Chart(long)
        .mark_circle(size=110, opacity=1)
        .encode(
            y=y,
            x="score_shown:Q",
            color=alt.Color(
                "case:N", title=None, scale=alt.Scale(range=PALETTE), legend=alt.Legend(orient="top", labelLimit=400)
            ),
            tooltip=[
                "individual",
                "case",
                alt.Tooltip("score_shown", title="score", format=".3f"),
                *([changed] if changed is not None else []),
            ],
        )
    )
    result: altair.LayerChart = _finished(
        alt.layer(line, dots).properties(width=WIDTH - 60, height=max(60, 26 * len(frame))), title
    )
    return result


def save(chart: Any, path: str | os.PathLike[str]) -> Path:
    """Write a chart to .html (offline: the JavaScript is inside), .svg or .png; returns the path."""
    target = Path(path)
    if target.suffix not in (".html", ".svg", ".png"):
        raise ValueError(f"a chart is saved as .html, .svg or .png; got {target.name!r}")
    target.parent.mkdir(parents=True, exist_ok=True)
    _vl_convert()
    if target.suffix == ".html":
        chart.save(str(target), inline=True)
    elif target.suffix == ".png":
        chart.save(str(target), scale_factor=2)
    else:
        chart.save(str(target))
    return target


def _finished(chart: Any, title: str, subtitle: str | None = None) -> Any:
    """Title and a quiet look, the same for every chart."""
    alt = _altair()
    head = {"text": title, "fontSize": 15, "anchor": "start", "offset": 12}
    if subtitle is not None:
        head |= {"subtitle": subtitle, "subtitleFontSize": 11, "subtitleColor": "#555"}
    return (
        chart.properties(title=alt.Title(**head))
        .configure(font="sans-serif", background="white", padding=12)
        .configure_axis(
            labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridColor="#eee", domainColor="#999"
        )
        .configure_legend(labelFontSize=12, titleFontSize=11, titleFontWeight="normal")
        .configure_view(stroke="#ccc")
    )


def _joined(tables: pd.DataFrame | Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One frame with a column ``method``."""
    if isinstance(tables, pd.DataFrame):
        return tables if "method" in tables else tables.assign(method="")
    if not tables:
        raise ValueError("there is nothing to draw")
    return pd.concat([table.assign(method=name) for name, table in tables.items()], ignore_index=True)


def _is_score(name: str, frame: pd.DataFrame) -> bool:
    stem = name.removesuffix("_low").removesuffix("_high")
    return f"{stem}_low" in frame and f"{stem}_high" in frame


def _one_two_five(values: pd.Series[float]) -> list[float]:
    """Ticks 1, 2, 5 in each power of ten that positive values span: a grid that can be read."""
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    return [float(f"{k}e{int(e)}") for e in np.arange(low, high + 1) for k in (1, 2, 5)]


def _pixels(x: Any, y: Any) -> np.ndarray:
    """Where points lie in the chart, (n, 2), y downwards; about, since the axes leave some room."""
    both = np.stack([np.asarray(x, dtype=np.float64), -np.asarray(y, dtype=np.float64)], axis=1)
    low, high = np.nanmin(both, axis=0), np.nanmax(both, axis=0)
    result: np.ndarray = (both - low) / np.where(high > low, high - low, 1) * [0.9 * WIDTH, 0.8 * HEIGHT]
    return result


def _label_places(points: np.ndarray, labels: Sequence[str]) -> list[tuple[str, str] | None]:
    """A place for each label where it covers no point and no other label; None where there is none, or no label."""
    taken: list[tuple[float, float, float, float]] = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    places: list[tuple[str, str] | None] = []
    for (x, y), label in zip(points, labels):
        places.append(None)
        for (align, baseline), (dx, dy) in PLACES.items() if label else ():
            left = x + dx - (5.5 * len(label) if align == "right" else 0)
            top = y + dy - (10 if baseline == "bottom" else 0)
            box = (left, top, left + 5.5 * len(label), top + 10)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
                places[-1] = (align, baseline)
                taken.append(box)
                break
    return places


def _settings(row: pd.Series[Any], parameters: list[str]) -> str:
    """'rho=5' of one point; parameters of other methods are missing and left out."""
    shown = []
    for name in parameters:
        value = row[name]
        if not (isinstance(value, float) and np.isnan(value)) and value is not None:
            shown.append(f"{name}={value:g}" if isinstance(value, int | float | np.number) else f"{name}={value}")
    return ", ".join(shown)


def _level(p: np.ndarray, middle: np.ndarray, level: float = 0.5) -> pd.DataFrame:
    """Where a surface crosses a level: short lines (x, y)-(x2, y2) between the cells, by marching squares."""
    lines = []
    for i in range(len(middle) - 1):
        for j in range(len(middle) - 1):
            corners = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
            cuts = []
            for (a, b), (c, d) in zip(corners, corners[1:] + corners[:1]):
                if (p[a, b] < level) != (p[c, d] < level):
                    t = (level - p[a, b]) / (p[c, d] - p[a, b])
                    cuts.append((middle[a] + t * (middle[c] - middle[a]), middle[b] + t * (middle[d] - middle[b])))
            lines += [(*cuts[k], *cuts[k + 1]) for k in range(0, len(cuts) - 1, 2)]
    return pd.DataFrame(lines, columns=["x", "y", "x2", "y2"]).round(4)


def _altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise ImportError("charts need Altair: pip install evenhand[report]") from error
    return altair


def _vl_convert() -> None:
    try:
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise ImportError("saving charts needs vl-convert-python: pip install evenhand[report]") from error
