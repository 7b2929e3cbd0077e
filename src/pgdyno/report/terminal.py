"""What tables for the terminal share: styles of decisions, and texts that cannot steer it. Pure."""

from __future__ import annotations

import unicodedata

from rich.text import Text

from pgdyno.model.verdict import Decision

DECISION_STYLES = {
    Decision.BETTER: "bold green",
    Decision.WORSE: "bold red",
    Decision.EQUIVALENT: "cyan",
    Decision.INCONCLUSIVE: "yellow",
}


def plain_text(content: str, style: str = "") -> Text:
    """Return a text as it is: markup in it is not interpreted."""
    return Text("\n".join(printable(line) for line in content.split("\n")), style=style)


def printable(content: str) -> str:
    """Return a text without control characters: a name must not be able to steer the terminal."""
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) == "Cc" else c for c in content)
