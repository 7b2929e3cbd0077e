"""Elements of arrays in shared memory and lines of the cache, as a table and a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.model.profiles.element_layout import ElementLayout
from pgdyno.report.elements.tables import Table, columns


def elements_table(elements: Sequence[ElementLayout]) -> Table:
    """Return the elements, and their lesson."""
    return Table(
        f"Elements in shared memory and lines of {elements[0].line_bytes} B, from debug information",
        columns(
            *("Structure", "its element", "bytes", "of them unused", "alignment", "lines", "shares lines"),
            numbers_from=2,
        ),
        tuple(_row(one) for one in elements),
        lesson=_lesson(elements),
    )


def _row(one: ElementLayout) -> tuple[str, ...]:
    return (
        one.structure,
        " + ".join(one.types),
        f"{one.element_bytes:,}",
        f"{one.unused_bytes:,}",
        str(one.alignment_bytes),
        _lines(one),
        "yes" if one.shares_lines else "no",
    )


def _lines(one: ElementLayout) -> str:
    same = one.fewest_lines == one.most_lines
    return str(one.most_lines) if same else f"{one.fewest_lines} to {one.most_lines}"


def _lesson(elements: Sequence[ElementLayout]) -> str:
    sharing = [one.types[-1] for one in elements if one.shares_lines]
    which = f"here {', '.join(sharing)}" if sharing else "here none"
    return (
        f"an element that shares a line with its neighbour ({which}) leaves a CPU's cache also when another "
        "CPU writes to the neighbour alone (false sharing), which no simulation of one CPU counts"
    )
