"""One self-contained HTML file that opens offline: what was found, what was proved, what it cost."""

from evenhand.report.findings import Findings
from evenhand.report.page import Section, render

__all__ = ["Findings", "Section", "render"]
