"""Which lever a change belongs to. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.model.plans.plan import HUGE_PAGES, SERVER, Plan, PlanLine, kind_of
from pgdyno.model.tuning.space import BUILD
from pgdyno.plan.levers._contract import LeverModule

_HUGE_PAGES = "huge_pages"


def line_key(line: PlanLine) -> str:
    """Return the key of a variant that a planned change sets; ``BUILD`` for a build."""
    return BUILD if line.change.kind == SERVER else line.change.key


def lever_by_key(plan: Plan, levers: Mapping[str, LeverModule]) -> dict[str, str]:
    """Return the lever of every key that is planned, and of every setting that some lever sets."""
    found = {key: name for name, one in levers.items() for key in one.LEVER.settings}
    return found | {line_key(line): line.change.lever for line in plan.lines}


def with_pages_joined(part_of: Mapping[str, str]) -> dict[str, str]:
    """Return the parts with huge_pages in that of its pool.

    Servers side by side get it by whether they have a pool: apart, it would change nothing.
    """
    pools = [part for key, part in part_of.items() if kind_of(key) == HUGE_PAGES]
    if not pools:
        return dict(part_of)
    return {key: pools[0] if key == _HUGE_PAGES else part for key, part in part_of.items()}
