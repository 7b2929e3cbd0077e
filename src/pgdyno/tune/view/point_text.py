"""A configuration of a search as text: in a few words, or as lines to copy."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.plan import PER_APPLICATION
from pgdyno.model.tuning.space import BUILD, Point
from pgdyno.model.variants.variant import is_guc

_SHOWN_CHANGES = 4


def short_point(point: Point) -> str:
    """Return the first few changes of a configuration, and how many more it has."""
    shown = [f"{display_name(key)}={value}" for key, value in point.items()]
    left = len(shown) - _SHOWN_CHANGES
    return ", ".join(shown[:_SHOWN_CHANGES]) + (f" and {left} more" if left > 0 else "")


def grouped(point: Point, kept: Collection[str]) -> Iterator[str]:
    """Yield a configuration in groups: settings, programs, then the start of the server and its machine.

    ``kept`` are the keys that every configuration of its search has as planned.
    """
    for title, keys in (
        ("postgresql.conf", [key for key in point if is_guc(key) and key != BUILD]),
        ("programs: pgdyno switch --help says how a server moves to a build", [BUILD]),
        ("machine and start", [key for key in point if not is_guc(key)]),
    ):
        shown = [key for key in keys if key in point]
        if shown:
            yield f"  # {title}"
        for key in shown:
            yield f"  {display_name(key)} = {point[key]}{_remark(key, kept)}"


def _remark(key: str, kept: Collection[str]) -> str:
    if key in PER_APPLICATION:
        return "  # suits this workload's statements, may harm others: set it for this application alone"
    return "  # planned; a search is too short to judge it" if key in kept else ""
