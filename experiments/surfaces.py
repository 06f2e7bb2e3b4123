"""Decision surfaces on the two-dimensional task of Figures 1 and 4: how horizontal they are, and their pictures."""

import argparse
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from evenhand import evaluation
from evenhand.datasets import synthetic
from evenhand.search import GradientSearch

TEST_POINTS, TEST_SEED = 20_000, 1_000  # training seeds are small numbers
GRID = np.linspace(-1, 1, 401)  # for the tilt
COLUMNS, BANDS = 64, 10  # of the pictures: columns of pixels, shades of P(y = 1)
POINTS = 150  # training points shown in each picture
SIZE = 168  # of a picture, in pixels
RESULTS = Path(__file__).parent / "results"
SEARCH = GradientSearch(subspace_step=0.5, subspace_steps=3, full_step=0.1, full_steps=3, line_search=False)


class Panel(NamedTuple):
    """One picture: its title, and the probability of label 1 at points (n, 2)."""

    title: str
    probability: Callable[[Any], Any]
    measured: dict[str, float]


def measure(predict: Callable[[Any], Any]) -> dict[str, float]:
    """How a classifier treats points on a horizontal line.

    equal_pairs: share of pairs of random points of the same height which get the same label.
    tilt: how far the boundary rises and falls from left to right, as a share of the height of the square: 0 for a
        horizontal boundary, 1 for the diagonal which the labels ask for.
    accuracy: on new points which are labelled as the training points are, that is with the bias.
    """
    X, y = synthetic(TEST_POINTS, seed=TEST_SEED)
    other = np.random.default_rng(TEST_SEED).uniform(-1, 1, TEST_POINTS)
    pairs = np.stack([X, np.stack([other, X[:, 1]], axis=1)], axis=1)  # (n, 2, 2): a point and another on its line
    labels = predict(pairs.reshape(-1, 2)).reshape(-1, 2)
    square = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1)  # left to right, then bottom to top
    below = (predict(square.reshape(-1, 2)) == 0).reshape(len(GRID), -1).mean(axis=1)  # the boundary's height, 0 to 1
    return {
        "equal_pairs": evaluation.prediction_consistency(labels),
        "tilt": float(below.max() - below.min()),
        "accuracy": float(np.mean(labels[:, 0] == y)),
    }


def picture(panels: list[Panel], X: Any, y: Any, title: str, subtitle: str) -> alt.HConcatChart:
    """Small multiples: the shade is P(y = 1), the line the boundary, the dots some of the training points."""
    dots = pd.DataFrame({"x": X[:POINTS, 0], "y": X[:POINTS, 1], "label": y[:POINTS]})
    return (
        alt.hconcat(*(_one(panel, dots, first=panel is panels[0]) for panel in panels), spacing=14)
        .properties(
            title=alt.Title(title, subtitle=subtitle, fontSize=15, subtitleFontSize=12, anchor="start", offset=14)
        )
        .configure(font="sans-serif", background="white", padding=12)
        .configure_axis(
            grid=False, domain=False, tickSize=3, labelFontSize=10, titleFontSize=11, titleFontWeight="normal"
        )
        .configure_view(stroke="#bbb")
    )


def _one(panel: Panel, dots: pd.DataFrame, first: bool) -> alt.LayerChart:
    edges = np.linspace(-1, 1, COLUMNS + 1)
    x = alt.X(
        "x:Q", scale=alt.Scale(domain=[-1, 1]), title="does not matter", axis=alt.Axis(values=[-1, 0, 1], format="d")
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[-1, 1]),
        title="may decide" if first else None,
        axis=alt.Axis(values=[-1, 0, 1], format="d", labelFlush=True, labels=first, ticks=first),
    )
    shade = alt.Color(
        "p:Q",
        scale=alt.Scale(domain=[0, 1], scheme="blueorange"),
        title="P(y = 1)",
        legend=alt.Legend(gradientLength=SIZE - 30, values=[0, 0.5, 1], format=".1f"),
    )
    surface = (
        alt.Chart(_bands(panel.probability, edges))
        .mark_rect(aria=False)
        .encode(x=x, x2="x2", y=y, y2="y2", color=shade)
    )
    boundary = (
        alt.Chart(_boundary(panel.probability))
        .mark_line(color="black", strokeWidth=2, aria=False)
        .encode(x="x:Q", y="y:Q")
    )
    points = (
        alt.Chart(dots)
        .mark_circle(size=16, opacity=1, aria=False, stroke="white", strokeWidth=0.6)
        .encode(
            x="x:Q",
            y="y:Q",
            fill=alt.Fill("label:N", scale=alt.Scale(domain=[0, 1], range=["#1f4e79", "#a34a00"]), legend=None),
        )
    )
    found = f"{panel.measured['equal_pairs']:.1%} equal, tilt {panel.measured['tilt']:.1%}"
    return alt.layer(surface, boundary, points).properties(
        width=SIZE, height=SIZE, title=alt.Title(panel.title, subtitle=found, fontSize=13, subtitleFontSize=11)
    )


def _bands(probability: Callable[[Any], Any], edges: Any) -> pd.DataFrame:
    """The surface as rectangles: in each column of pixels, one for each run of the same shade (keeps the SVG small)."""
    middle = (edges[:-1] + edges[1:]) / 2
    heights = (GRID[:-1] + GRID[1:]) / 2
    square = np.stack(np.meshgrid(middle, heights, indexing="ij"), axis=-1)
    p = probability(square.reshape(-1, 2)).reshape(len(middle), len(heights))
    shade = np.minimum((p * BANDS).astype(int), BANDS - 1)
    runs = []
    for i, column in enumerate(shade):
        right = edges[min(i + 2, COLUMNS)]  # under the next column, so that no seam shows
        cuts = [0, *(np.flatnonzero(np.diff(column)) + 1), len(column)]
        for a, b in itertools.pairwise(cuts):
            runs.append((edges[i], right, GRID[a], GRID[b], (column[a] + 0.5) / BANDS))
    return pd.DataFrame(runs, columns=["x", "x2", "y", "y2", "p"]).round(4)


def _boundary(probability: Callable[[Any], Any]) -> pd.DataFrame:
    """Where P(y = 1) = 1/2, left to right; nothing where a column is all of one label."""
    square = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1)
    p = probability(square.reshape(-1, 2)).reshape(len(GRID), -1)
    crossed = (p < 0.5).any(axis=1) & (p > 0.5).any(axis=1)
    return pd.DataFrame({"x": GRID, "y": 2 * (p < 0.5).mean(axis=1) - 1})[crossed].round(4)


def save(chart: alt.HConcatChart, table: pd.DataFrame, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / f"{name}.csv", index=False, float_format="%.5g")
    chart.save(folder / f"{name}.svg")
    chart.save(folder / f"{name}.png", scale_factor=2)
    print(f"wrote {name}.csv, {name}.svg and {name}.png in {folder}")


def arguments(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed and few steps, to see that it runs")
    parser.add_argument("--out", type=Path, help="folder to write to (results; with --quick runs/quick)")
    given = parser.parse_args()
    given.out = given.out or (Path("runs/quick") if given.quick else RESULTS)
    return given
