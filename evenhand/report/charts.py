"""The charts of the report, as Vega-Lite made by Altair.

Colours are CSS variables, so light, dark and print need no second drawing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from evenhand.report.findings import NAMES, Findings

COLOURS = {"plain": "var(--plain)", "project": "var(--project)", "sensr": "var(--sensr)", "fair": "var(--fair)"}
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
        "gaps": gaps,
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
    """Accuracy against searched unfairness: the sweep over rho (validation), and the models (held out)."""
    import altair as alt

    rows = [
        {"x": row["unfairness"], "y": row["accuracy"], "label": f"rho {row['rho']:g}", "rho": row["rho"]}
        for row in f.frontier
        if "unfairness" in row and "accuracy" in row
    ]
    models = [
        {"x": m["audit"]["r_low"], "y": m["balanced_accuracy"], "label": NAMES[name], "model": NAMES[name]}
        for name, m in f.models.items()
        if m["audit"]["r_low"] is not None
    ]
    values = [row["x"] for row in rows + models]
    if not values:
        return None
    floor = max(max(values) * 1e-5, 1e-7)
    for row in rows + models:
        row["shown"] = max(row["x"], floor)
    x = alt.X(
        "shown:Q",
        scale=alt.Scale(type="log", nice=False, padding=56),
        axis=alt.Axis(
            title=["unfairness R found by search", "(logarithmic; left is fairer)"],
            format="~g",
            tickCount=5,
            grid=False,
        ),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(zero=False, padding=18),
        axis=alt.Axis(title="balanced accuracy", format=".1~%", tickCount=5),
    )
    tip = [
        alt.Tooltip("label:N", title="model"),
        alt.Tooltip("y:Q", title="balanced accuracy", format=".2%"),
        alt.Tooltip("x:Q", title="R found", format=".4g"),
    ]
    layers = []
    if rows:
        sweep = alt.Chart(pd.DataFrame(rows).sort_values("rho")).encode(x=x, y=y)
        layers += [
            sweep.mark_line(color="var(--fair)", strokeWidth=1.5, opacity=0.5).encode(order="rho:Q"),
            sweep.mark_point(color="var(--fair)", filled=False, size=50, fill="var(--paper)", strokeWidth=1.5).encode(
                tooltip=tip
            ),
            sweep.mark_text(color="var(--muted)", dy=16, fontSize=11).encode(text="label:N"),
        ]
    points = alt.Chart(pd.DataFrame(models)).encode(x=x, y=y)
    colour = alt.Color("model:N", scale=_scale(f), legend=None)
    layers += [
        points.mark_point(filled=True, size=130, opacity=1).encode(color=colour, tooltip=tip),
        points.mark_text(dy=-14, fontSize=12, fontWeight=600).encode(text="label:N", color=colour),
    ]
    return alt.layer(*layers).properties(width="container", height=300)


def distribution(f: Findings) -> Any:
    """How many people have a worst-case change larger than d: one falling line a model."""
    import altair as alt

    rows = []
    for name, m in f.models.items():
        q = np.maximum(np.asarray(m["audit"]["quantiles"], dtype=float), 0)
        steps = [(0.0, 1.0), *((float(np.sqrt(v)), 1 - i / 100) for i, v in enumerate(q))]
        rows += [{"d": d, "share": share, "model": NAMES[name]} for d, share in steps]
    frame = pd.DataFrame(rows)
    top = max(float(np.sqrt(max(m["audit"]["quantiles"][98], 0))) for m in f.models.values()) or 1.0
    lines = alt.Chart(frame).encode(
        x=alt.X(
            "d:Q",
            scale=alt.Scale(domain=[0, top]),
            axis=alt.Axis(title=["worst-case change", "of the model's output (logits)"], grid=False, tickCount=6),
        ),
        y=alt.Y("share:Q", axis=alt.Axis(title="share of people with a larger change", format=".0%", tickCount=5)),
        color=alt.Color(
            "model:N",
            scale=_scale(f),
            legend=alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=3),
        ),
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("d:Q", title="change", format=".3g"),
            alt.Tooltip("share:Q", title="people with more", format=".0%"),
        ],
    )
    return lines.mark_line(strokeWidth=2, interpolate="step-after", clip=True).properties(width="container", height=260)


def gaps(f: Findings) -> Any:
    """Share predicted right in each group, with 95 % intervals, plain against fair."""
    import altair as alt

    rows = []
    for name in ("plain", "fair"):
        for attribute, gap in f.models[name]["gaps"].items():
            for rate in gap["rates"]:
                if rate["rate"] is None:
                    continue
                truth = f.labels[rate["class"]] if rate["class"] < len(f.labels) else str(rate["class"])
                rows.append(
                    {
                        "group": f"{attribute}: {rate['group']}",
                        "truth": f"{f.target} = {truth}",
                        "rate": rate["rate"],
                        "low": rate["interval"][0],
                        "high": rate["interval"][1],
                        "n": rate["n"],
                        "model": NAMES[name],
                    }
                )
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    groups = list(dict.fromkeys(frame["group"]))[:24]
    frame = frame[frame["group"].isin(groups)]
    y = alt.Y(
        "group:N",
        sort=groups,
        axis=alt.Axis(title=None, grid=False, labelLimit=180, labelColor="var(--ink)", domain=False, ticks=False),
    )
    offset = alt.YOffset("model:N", sort=[NAMES["plain"], NAMES["fair"]], scale=alt.Scale(paddingOuter=0.6))
    colour = alt.Color(
        "model:N", scale=_scale(f), legend=alt.Legend(title=None, orient="top", values=[NAMES["plain"], NAMES["fair"]])
    )
    tip = [
        alt.Tooltip("model:N"), alt.Tooltip("group:N"), alt.Tooltip("truth:N", title="people with"),
        alt.Tooltip("rate:Q", title="predicted right", format=".1%"),
        alt.Tooltip("low:Q", title="95 % from", format=".1%"),
        alt.Tooltip("high:Q", title="to", format=".1%"), alt.Tooltip("n:Q", title="people", format=","),
    ]  # fmt: skip
    base = alt.Chart().encode(y=y, yOffset=offset, color=colour, tooltip=tip)
    x = alt.X(
        "rate:Q",
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(title="predicted right", format=".0%", tickCount=4),
    )
    layered = alt.layer(
        base.mark_rule(strokeWidth=2, opacity=0.55).encode(x=alt.X("low:Q"), x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(x=x),
        data=frame,
    ).properties(width="container", height={"step": 13})
    truths = list(dict.fromkeys(frame["truth"]))[:4]
    return alt.vconcat(
        *(
            layered.transform_filter(alt.FieldEqualPredicate(field="truth", equal=truth)).properties(
                title=f"Among people with {truth}", width=820
            )
            for truth in truths
        )
    )


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
