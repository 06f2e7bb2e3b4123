"""The charts of the report, as Vega-Lite made by Altair.

Colours are CSS variables, so light, dark and print need no second drawing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from evenhand.report.findings import Findings
from evenhand.report.names import NAMES

COLOURS = {
    "plain": "var(--plain)",
    "blind": "var(--blind)",
    "boosted": "var(--boosted)",
    "boosted_blind": "var(--boosted-blind)",
    "project": "var(--project)",
    "sensr": "var(--sensr)",
    "fair_network": "var(--fair-other)",
    "fair_trees": "var(--fair-other)",
    "fair": "var(--fair)",
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)", "titleColor": "var(--muted)", "gridColor": "var(--rule)",
        "domainColor": "var(--rule)", "tickColor": "var(--rule)", "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelPadding": 6,
        "titlePadding": 10, "labelFont": FONT, "titleFont": FONT,
    },
    "header": {"labelColor": "var(--ink)", "labelFontSize": 12, "labelFont": FONT, "labelFontWeight": 600},
    "text": {"color": "var(--ink)", "font": FONT, "fontSize": 12},
    "title": {"color": "var(--ink)", "font": FONT, "fontSize": 13, "anchor": "start", "fontWeight": 600},
    "legend": {"labelColor": "var(--ink)", "titleColor": "var(--muted)", "labelFont": FONT, "labelFontSize": 12},
}  # fmt: skip


def charts(f: Findings) -> dict[str, dict[str, Any]]:
    """All charts that the run has data for: name -> Vega-Lite."""
    makers: dict[str, Callable[[Findings], Any]] = {
        "tradeoff": tradeoff,
        "distribution": distribution,
        "groups": groups,
        "calibration": calibration,
        "directions": directions,
        "training": training,
    }
    specs: dict[str, dict[str, Any]] = {}
    for name, make in makers.items():
        chart = make(f)
        if chart is not None:
            spec = {**chart.to_dict(), "config": CONFIG}
            if spec.get("width") == "container":
                spec["autosize"] = {"type": "fit-x", "contains": "padding"}
            specs[name] = spec
    return specs


def _scale(f: Findings) -> Any:
    import altair as alt

    return alt.Scale(domain=[NAMES[m] for m in f.models], range=[COLOURS[m] for m in f.models])


def tradeoff(f: Findings) -> Any:
    """Accuracy against unfairness relative to strangers: every model, on held-out people."""
    import altair as alt

    key, score = f.score
    rows = []
    for name, m in f.models.items():
        if m["audit"]["relative"] is not None:
            low, high = m["intervals"][key]
            rows.append({"x": m["audit"]["relative"], "y": m[key], "low": low, "high": high, "model": NAMES[name]})
    if not rows:
        return None
    floor = max(max(row["x"] for row in rows) * 1e-5, 1e-7)
    for row in rows:
        row["shown"] = max(row["x"], floor)
    form = ".1~%" if not f.regression else ".2f"
    x = alt.X(
        "shown:Q",
        scale=alt.Scale(type="log", nice=False, padding=24),
        axis=alt.Axis(
            title=["similar people's difference over strangers'", "(logarithmic; left is fairer)"],
            format="~g",
            tickCount=5,
            grid=False,
        ),
    )
    y = alt.Y("y:Q", scale=alt.Scale(zero=False, padding=18), axis=alt.Axis(title=score, format=form, tickCount=5))
    colour = alt.Color(
        "model:N", scale=_scale(f), legend=alt.Legend(title=None, orient="bottom", columns=2, labelLimit=170)
    )
    tip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("y:Q", title=score, format=".3f"),
        alt.Tooltip("low:Q", title="95% from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("x:Q", title="similar over strangers", format=".4g"),
    ]
    base = alt.Chart(pd.DataFrame(rows)).encode(x=x, color=colour, tooltip=tip)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(y=alt.Y("low:Q", title=score), y2="high:Q")
    points = base.mark_point(filled=True, size=130, opacity=1).encode(y=y)
    return alt.layer(bars, points).properties(width="container", height=280)


def distribution(f: Findings) -> Any:
    """How many people have a worst-case change above so much of how strangers differ: one falling line a model."""
    import altair as alt

    rows, tops = [], []
    for name, m in f.models.items():
        apart = m["audit"]["strangers"]
        if not apart:
            continue
        q = np.sqrt(np.maximum(np.asarray(m["audit"]["quantiles"], dtype=float), 0) / apart)
        tops.append(float(q[98]))
        steps = [(0.0, 1.0), *((float(v), 1 - i / 100) for i, v in enumerate(q))]
        rows += [{"d": d, "share": share, "model": NAMES[name]} for d, share in steps]
    if not rows:
        return None
    lines = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X(
            "d:Q",
            scale=alt.Scale(domain=[0, max(tops) or 1.0]),
            axis=alt.Axis(
                title=["worst change found for a person,", "over the typical difference of strangers"],
                grid=False,
                tickCount=6,
            ),
        ),
        y=alt.Y("share:Q", axis=alt.Axis(title="share of people with more", format=".0%", tickCount=5)),
        color=alt.Color(
            "model:N",
            scale=_scale(f),
            legend=alt.Legend(
                title=None, orient="bottom", columns=2, symbolType="stroke", symbolStrokeWidth=3, labelLimit=170
            ),
        ),
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("d:Q", title="change", format=".3g"),
            alt.Tooltip("share:Q", title="people with more", format=".0%"),
        ],
    )
    return lines.mark_line(strokeWidth=2, interpolate="step-after", clip=True).properties(width="container", height=260)


def groups(f: Findings) -> Any:
    """Selection rate of each group (mean error of a quantity), with 95 % intervals: the usual and the fair model."""
    import altair as alt

    key, title = (
        ("error", "mean error of the prediction")
        if f.regression
        else ("selection", f"share decided {f.metrics['positive']}")
    )
    panels = []
    shown = list(dict.fromkeys([f.reference, "fair"]))
    for attribute in f.sensitive:
        rows = [
            {"group": r["group"], "rate": r[key]["rate"], "low": r[key]["interval"][0], "high": r[key]["interval"][1],
             "n": r["n"], "model": NAMES[name]}
            for name in shown
            for r in f.models[name]["groups"][attribute]["rates"]
            if not r["small"] and r[key]["rate"] is not None
        ]  # fmt: skip
        if not rows:
            continue
        frame = pd.DataFrame(rows)
        names = list(dict.fromkeys(frame["group"]))[:24]
        tip = [
            alt.Tooltip("model:N"), alt.Tooltip("group:N"), alt.Tooltip("rate:Q", title=title, format=".3f"),
            alt.Tooltip("low:Q", title="95% from", format=".3f"), alt.Tooltip("high:Q", title="to", format=".3f"),
            alt.Tooltip("n:Q", title="people", format=","),
        ]  # fmt: skip
        base = alt.Chart(frame[frame["group"].isin(names)]).encode(
            y=alt.Y("group:N", sort=names, axis=_names_axis()),
            yOffset=alt.YOffset("model:N", sort=[NAMES[name] for name in shown], scale=alt.Scale(paddingOuter=0.6)),
            color=alt.Color("model:N", scale=_scale(f), legend=alt.Legend(
                title=None, orient="bottom", columns=1, values=[NAMES[name] for name in shown], labelLimit=200)),
            tooltip=tip,
        )  # fmt: skip
        axis = alt.Axis(title=title, format=".0%" if not f.regression else ".3~g", tickCount=4)
        layered = alt.layer(
            base.mark_rule(strokeWidth=2, opacity=0.55).encode(x=alt.X("low:Q", title=title), x2="high:Q"),
            base.mark_point(filled=True, size=60, opacity=1).encode(
                x=alt.X("rate:Q", scale=alt.Scale(zero=False), axis=axis)
            ),
        )
        panels.append(layered.properties(width=820, height={"step": 13}, title=f"By {attribute}"))
    if not panels:
        return None
    return panels[0] if len(panels) == 1 else alt.vconcat(*panels)


def _names_axis() -> Any:
    import altair as alt

    return alt.Axis(title=None, grid=False, labelLimit=150, labelColor="var(--ink)", domain=False, ticks=False)


def calibration(f: Findings) -> Any:
    """What was said against what happened, in groups of people with rising probability."""
    import altair as alt

    if f.regression:
        return None
    rows = [
        {"said": r["said"], "happened": r["happened"], "low": r["interval"][0], "high": r["interval"][1], "n": r["n"],
         "model": NAMES[name]}
        for name in dict.fromkeys([f.reference, "fair"])
        for r in f.models[name]["calibration"]
    ]  # fmt: skip
    line = pd.DataFrame({"said": [0.0, 1.0], "happened": [0.0, 1.0]})
    x = alt.X(
        "said:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(
            title=f"probability of {f.metrics['positive']} that was said", format=".0%", tickCount=5, grid=False
        ),
    )
    y = alt.Y(
        "happened:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title="share for whom it was so", format=".0%", tickCount=5),
    )
    tip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("said:Q", format=".1%"),
        alt.Tooltip("happened:Q", format=".1%"),
        alt.Tooltip("n:Q", title="people"),
    ]
    colour = alt.Color(
        "model:N",
        scale=_scale(f),
        legend=alt.Legend(
            title=None, orient="bottom", columns=2, labelLimit=170, values=list(dict.fromkeys(r["model"] for r in rows))
        ),
    )
    base = alt.Chart(pd.DataFrame(rows)).encode(x=x, color=colour, tooltip=tip)
    return alt.layer(
        alt.Chart(line).mark_line(color="var(--rule)", strokeDash=[4, 4]).encode(x=x, y=y),
        base.mark_rule(opacity=0.5).encode(y=alt.Y("low:Q", title="share for whom it was so"), y2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(y=y),
    ).properties(width="container", height=260)


def directions(f: Findings) -> Any:
    """The coefficients of the inner models: what gives a sensitive attribute away."""
    import altair as alt

    made = [d for d in f.metrics["directions"] if d["kind"] == "proxy" and d["coefficients"]]
    if not made:
        return None
    panels = []
    for one in made[:6]:
        frame = pd.DataFrame(one["coefficients"][:12])
        frame["sign"] = np.where(frame["weight"] > 0, "up", "down")
        order = frame["feature"].tolist()
        base = alt.Chart(frame).encode(
            y=alt.Y(
                "feature:N",
                sort=order,
                axis=alt.Axis(
                    title=None, grid=False, labelLimit=240, labelColor="var(--ink)", domain=False, ticks=False
                ),
            ),
            x=alt.X("weight:Q", axis=alt.Axis(title="coefficient (of standardised columns)", tickCount=5)),
            tooltip=[alt.Tooltip("feature:N"), alt.Tooltip("weight:Q", format=".3f")],
        )
        bars = base.mark_bar(height=11, cornerRadius=1).encode(
            color=alt.Color(
                "sign:N", scale=alt.Scale(domain=["up", "down"], range=["var(--fair)", "var(--plain)"]), legend=None
            )
        )
        panels.append(bars.properties(width=640, height={"step": 20}, title=f"What predicts {one['name']}"))
    return panels[0] if len(panels) == 1 else alt.vconcat(*panels).resolve_scale(x="independent")


def training(f: Findings) -> Any:
    """Loss, worst-case change and price lam over the steps of fair training."""
    import altair as alt

    history = f.models["fair"].get("history") or {}
    titles = {"loss": "loss", "d_y": "worst-case change d_Y", "d_x": "fair distance d_X", "lam": "price lam"}
    steps = history.get("step") or []
    rows = [
        {"step": step, "value": value, "series": title}
        for key, title in titles.items()
        for step, value in zip(steps, history.get(key) or [])
        if value is not None
    ]
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    panels = []
    for title in [t for t in titles.values() if t in set(frame["series"])]:
        panels.append(
            alt.Chart(frame[frame["series"] == title])
            .mark_line(color="var(--fair)", strokeWidth=1.8)
            .encode(
                x=alt.X("step:Q", axis=alt.Axis(title="step", tickCount=4, grid=False, format="~s")),
                y=alt.Y("value:Q", axis=alt.Axis(title=None, tickCount=4)),
                tooltip=[alt.Tooltip("step:Q"), alt.Tooltip("value:Q", format=".4g", title=title)],
            )
            .properties(width=400, height=120, title=title)
        )
    return alt.concat(*panels, columns=2, spacing=24).resolve_scale(y="independent")
