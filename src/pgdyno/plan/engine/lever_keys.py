"""The lever of each planned change. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pgdyno.model.plans.plan import HUGE_PAGES, SERVER, Plan, PlanLine, kind_of
from pgdyno.model.tuning.space import BUILD
from pgdyno.plan.levers._contract import LeverModule

_HUGE_PAGES = "huge_pages"


def line_key(line: PlanLine) -> str:
    """Return the variant key that a planned change sets; ``BUILD`` for a build."""
    return BUILD if line.change.kind == SERVER else line.change.key


def lever_by_key(plan: Plan, levers: Mapping[str, LeverModule]) -> dict[str, str]:
    """Return the lever of every planned key and of every setting that any lever sets."""
    found = {key: name for name, one in levers.items() for key in one.LEVER.settings}
    return found | {line_key(line): line.change.lever for line in plan.lines}


def with_pages_joined(part_of: Mapping[str, str]) -> dict[str, str]:
    """Return the parts, with huge_pages moved to the part of its pool.

    On interleaved servers, huge_pages is on exactly if the server has a pool: it has no separate effect.
    """
    pools = [part for key, part in part_of.items() if kind_of(key) == HUGE_PAGES]
    if not pools:
        return dict(part_of)
    return {key: pools[0] if key == _HUGE_PAGES else part for key, part in part_of.items()}
