"""The number of workers to set for a query, in words and as statements. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.experiments.degree_settings import AtOnce, DegreeSetting, degree_settings
from pgdyno.model.experiment import Experiment
from pgdyno.report import numbers
from pgdyno.report.grid_tables import counted
from pgdyno.report.scaling import bounded

_UNIT = "workers"
_WHERE = (
    "SET is for a session, ALTER ROLE and ALTER DATABASE … SET for all of theirs, ALTER TABLE … SET "
    "(parallel_workers = N) for all queries of a table and builds of its indexes"
)
_LIMIT = (
    "These are upper limits: pgdyno explain-degree --workers N says what else keeps the planner from a number"
)


@dataclass(frozen=True)
class WhatToSet:
    """``statements`` are those that are certain; there may be none."""

    sentences: tuple[str, ...]
    statements: tuple[str, ...]


def what_to_set(experiment: Experiment) -> WhatToSet | None:
    """Return what to set for each query; None where no numbers of workers were measured."""
    found = degree_settings(experiment)
    if not found:
        return None
    statements = tuple(
        f"SET {one.setting} = {one.workers};  -- {one.load}" for one in found if one.workers is not None
    )
    return WhatToSet((*map(_sentence, found), *((_WHERE, _LIMIT) if statements else ())), statements)


def _sentence(one: DegreeSetting) -> str:
    if one.workers is None:
        return f"{one.load}: which number is enough is not certain yet ({one.knee}); --budget for more rounds"
    rate = f"at least {numbers.share(1 - one.knee.tolerance)} of any other number's rate"
    how = "confirmed by fresh rounds" if one.is_confirmed else "by all rounds together"
    alone = f"{one.load} by itself: {counted(one.workers, _UNIT)}, {rate} ({how})"
    return "; ".join((alone, *_costs(one)))


def _costs(one: DegreeSetting) -> Iterator[str]:
    """Yield what that number leaves to several clients at once."""
    for other in one.at_once:
        yield f"{other.load.removeprefix(f'{one.load}, ')}: {_cost(other)}"


def _cost(other: AtOnce) -> str:
    if other.ratio is None:
        return "the best for them too"
    best = f"their highest, with {counted(other.best, _UNIT)}"
    return f"{numbers.share(other.ratio.point)} ({bounded(other.ratio)}) of {best}"
