"""The HTML page: template, style, script and the Vega runtime in one file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from evenhand.report.charts import charts
from evenhand.report.findings import Findings, compact, in_100, number, share_of
from evenhand.report.names import LONG_NAMES, NAMES


class Section(NamedTuple):
    """A section of one's own: a title, and the Jinja text below it, in which ``f`` are the findings."""

    title: str
    template: str


def render(findings: Findings, more: Sequence[Section] = ()) -> str:
    """The report. Everything that comes from the data is escaped; nothing is loaded from a network."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise ModuleNotFoundError(
            "the report needs jinja2, altair and vl-convert: pip install 'evenhand[report]'"
        ) from error
    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value: "undefined" if value is None else number(value),
        "in_100": in_100,
        "percent": lambda value: "undefined" if value is None else f"{value:.1%}",
        "share_of": lambda value: "undefined" if value is None else share_of(value),
    }
    specs = charts(findings)
    return environment.get_template("report.html.j2").render(
        f=findings,
        names=NAMES,
        long_names=LONG_NAMES,
        style=_template("report.css"),
        script=_template("report.js"),
        runtime=_runtime(),
        charts=specs,
        charts_json=compact(specs),
        thresholds_json=compact(findings.fair.get("thresholds") or []),
        dots=_dots,
        more=[(section.title, environment.from_string(section.template).render(f=findings)) for section in more],
    )


def _dots(share: float) -> list[dict[str, Any]]:
    """A hundred people in ten rows of ten; the first ``share`` of them marked, the last one by a smaller dot."""
    marked = np.clip(share - np.arange(100), 0, 1)
    return [
        {"x": 8 + 16 * (i % 10), "y": 8 + 16 * (i // 10), "r": round(5.2 * float(part) ** 0.5, 2)}
        for i, part in enumerate(marked)
    ]


def _template(name: str) -> str:
    return files("evenhand.report").joinpath("templates", name).read_text("utf-8")


@lru_cache(maxsize=1)
def _runtime() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the installed vl-convert."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    known = vl_convert.get_vegalite_versions()
    bundle: str = vl_convert.javascript_bundle(None, version if version in known else known[-1])  # type: ignore[arg-type]
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
