"""The number of workers to set for a query, as sentences and statements. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.measure.verdicts.degree_settings import BUILDS, QUERIES, AtOnce, DegreeSetting, degree_settings
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.studies.grids.grid_tables import counted
from pgdyno.studies.grids.scaling import bounded

_UNIT = "workers"
_WHERE = (
    "Each is for its own query. SET is for a session, ALTER ROLE … SET and ALTER DATABASE … SET for all "
    "sessions of the role or database, ALTER TABLE … SET (parallel_workers = N) for all queries of a table "
    "and builds of its indexes"
)
_LIMITS = {
    QUERIES: f"{QUERIES} is an upper limit: pgdyno explain-degree --workers N shows the other limits",
    BUILDS: (
        f"{BUILDS} is an upper limit: without the table's option parallel_workers, a build gets only as many "
        "workers as leave each process, including the leader, 32 MB of maintenance_work_mem"
    ),
}


@dataclass(frozen=True)
class WhatToSet:
    """The best numbers in words. ``statements`` has only the certain ones, and may be empty."""

    sentences: tuple[str, ...]
    statements: tuple[str, ...]


def what_to_set(experiment: Experiment) -> WhatToSet | None:
    """Return the settings for each query; None if the number of workers was not varied."""
    found = degree_settings(experiment)
    if not found:
        return None
    certain = [one for one in found if one.workers is not None]
    limits = tuple(_LIMITS[setting] for setting in dict.fromkeys(one.setting for one in certain))
    where = (_WHERE, *limits) if certain else ()
    return WhatToSet((*map(_sentence, found), *where), tuple(map(_statement, certain)))


def _statement(one: DegreeSetting) -> str:
    settings = {one.setting: one.workers, **dict.fromkeys(one.also, "on")}
    return f"{' '.join(f'SET {name} = {value};' for name, value in settings.items())}  -- {one.load}"


def _sentence(one: DegreeSetting) -> str:
    if one.workers is None:
        return f"{one.load}: the best number is not certain yet ({one.knee}); --budget for more rounds"
    rate = f"at least {numbers.share(1 - one.knee.tolerance)} of any other number's rate"
    how = "confirmed by fresh rounds" if one.is_confirmed else "from all rounds"
    alone = f"{one.load} by itself: {counted(one.workers, _UNIT)}, {rate} ({how})"
    return "; ".join((alone, *_costs(one)))


def _costs(one: DegreeSetting) -> Iterator[str]:
    """Yield the effects of that number on concurrent clients."""
    for other in one.at_once:
        yield f"{other.load.removeprefix(f'{one.load}, ')}: {_cost(other)}"


def _cost(other: AtOnce) -> str:
    if not other.is_measured:
        return f"not measured with this number; best with {counted(other.best, _UNIT)}"
    if other.ratio is None:
        return "the best for them too"
    best = f"their highest, with {counted(other.best, _UNIT)}"
    return f"{numbers.share(other.ratio.point)} ({bounded(other.ratio)}) of {best}"
