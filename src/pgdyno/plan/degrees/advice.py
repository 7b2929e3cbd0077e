"""The shortest list of statements to have a given number of workers planned and launchable.

Settings are tested with EXPLAIN before they are advised. A table's storage parameter is not, because ALTER
TABLE would lock the table. The size thresholds are set instead, to values that give the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pgdyno.plan.degrees.causes import CAP, Inquiry
from pgdyno.postgres.parallel_degree import (
    Cause,
    DegreeAdvice,
    DegreeStep,
    ExplainedGather,
    Gather,
    Limit,
    Pools,
    Table,
)
from pgdyno.postgres.planner.parallel_plan import gathers, planned_workers, threshold_for

_SIZES = (Limit.TABLE_SIZE.value, Limit.INDEX_SIZE.value)
_COSTS: tuple[tuple[Limit, ...], ...] = (
    (),
    (Limit.SETUP_COST,),
    (Limit.TUPLE_COST,),
    (Limit.SETUP_COST, Limit.TUPLE_COST),
)
_NUMBERS = frozenset(
    {Limit.CAP, Limit.RELOPTION, Limit.TABLE_SIZE, Limit.INDEX_SIZE, Limit.CHILDREN}
    | {Limit.SETUP_COST, Limit.TUPLE_COST, Limit.DEBUG}
)
"""Limits that are settable values; the others are properties of the query."""
_FOR_A_SESSION = "for this session"
_NO_CHANGE_SUFFICES = "no limit that can be tested gives this number when changed"


@dataclass(frozen=True)
class _Found:
    steps: tuple[DegreeStep, ...]
    workers: int | None  # planned by EXPLAIN with the steps or their substitutes; None: not tested


def advise(
    inquiry: Inquiry,
    workers: int,
    main: ExplainedGather | None,
    causes: tuple[Cause, ...],
    pools: Pools,
) -> DegreeAdvice:
    """Return the steps to N workers. ``main`` is the Gather with the most workers, or None."""
    if planned_workers(inquiry.plan({})) == workers:
        return DegreeAdvice(workers, tuple(_pool_steps(pools, workers)), workers)
    unknown = [cause for cause in causes if cause.limit is Limit.NOT_FOUND_OUT]
    in_query = [cause for cause in causes if cause.limit not in _NUMBERS and cause not in unknown]
    if in_query and workers:
        # Settings could forbid the cheaper serial plan, but their cost for other queries is unacceptable.
        is_certain = all(cause.limit is not Limit.SERIAL_IS_CHEAPER for cause in in_query)
        return DegreeAdvice(workers, (), None, obstacle=_described(in_query), is_certain=is_certain)
    found = _by_settings(inquiry, workers) or _by_option(inquiry, workers, main, causes)
    if found is None:
        why = "; ".join(filter(None, (_NO_CHANGE_SUFFICES, _described(unknown))))
        return DegreeAdvice(workers, (), None, obstacle=why, is_certain=False)
    return DegreeAdvice(workers, (*found.steps, *_pool_steps(pools, workers)), found.workers)


def _described(causes: Iterable[Cause]) -> str:
    return "; ".join(f"{cause.what}: {cause.why}" for cause in causes)


def _by_settings(inquiry: Inquiry, workers: int) -> _Found | None:
    """Return the smallest set of session settings that gives the number; None if none does."""
    cap = {CAP: str(workers)}
    caps = [cap] if workers == 0 or workers > inquiry.cap else [{}, cap]
    for costs in _COSTS:
        for settings in caps:
            tried = {**settings, **_free(costs)}
            if tried and planned_workers(inquiry.plan(tried)) == workers:
                return _Found(tuple(_sets(tried)), workers)
    return None


def _by_option(
    inquiry: Inquiry, workers: int, main: ExplainedGather | None, causes: tuple[Cause, ...]
) -> _Found | None:
    """Return a table's storage parameter, with the settings needed in addition."""
    if table := _with_option(inquiry, main, causes):
        steps = (*_sets(_raised(inquiry, workers)), _option(table, workers, {}, is_tried=False))
        return _Found(steps, None)
    best: _Found | None = None
    for costs in _COSTS:
        found = _with_costs(inquiry, workers, costs)
        if found is not None and found.workers == workers:
            return found
        best = best or found
    return best


def _with_costs(inquiry: Inquiry, workers: int, costs: Iterable[Limit]) -> _Found | None:
    """Return the storage parameter for the table that would be shared if its size did not count.

    None if the parameter does not give the number.
    """
    # Always capped: the parameter gives exactly this number, the size could give more.
    changed = {CAP: str(workers), **_free(costs)}
    sizes: Mapping[str, str] = dict.fromkeys(_SIZES, "0")
    plan = inquiry.plan({**changed, **sizes})
    reached = planned_workers(plan)
    shared = gathers(plan)[0] if reached else None
    target = None if shared is None else _largest(inquiry, shared)
    if shared is None or target is None:
        return None
    threshold = _threshold(inquiry, workers, shared, target)
    if threshold is not None:
        # Closer to the storage parameter's effect: other tables stay too small.
        sizes = {Limit.TABLE_SIZE.value: str(threshold)}
        reached = planned_workers(inquiry.plan({**changed, **sizes}))
        if reached != workers:
            return None
    if target.is_system:
        return _Found(tuple(_sets({**changed, **sizes})), reached) if reached == workers else None
    needed = {**_raised(inquiry, workers), **_free(costs)}
    option = _option(target.name, workers, sizes, is_tried=reached == workers)
    return _Found((*_sets(needed), option), reached)


def _threshold(inquiry: Inquiry, workers: int, shared: Gather, table: Table) -> int | None:
    """Return the threshold at which the only shared table's size gives this number; None if none does."""
    if shared.is_append or not all(scan.name.endswith("Seq Scan") for scan in shared.scans):
        return None
    threshold = threshold_for(table.pages, workers)
    return None if threshold is None else min(threshold, inquiry.pages(Limit.TABLE_SIZE))


def _with_option(inquiry: Inquiry, main: ExplainedGather | None, causes: tuple[Cause, ...]) -> str | None:
    """Return the deciding table if it already has the parameter, which no size threshold can substitute."""
    if main is None:
        return next((cause.table for cause in causes if cause.limit is Limit.RELOPTION), None)
    target = _largest(inquiry, main.gather)
    return None if target is None or target.parallel_workers is None else target.name


def _largest(inquiry: Inquiry, gather: Gather) -> Table | None:
    """Return the table to set the parameter on: any of an Append's children would do, so the largest."""
    tables = inquiry.tables(gather.scans).values()
    return max(tables, key=lambda table: table.pages, default=None)


def _raised(inquiry: Inquiry, workers: int) -> Mapping[str, str]:
    return {CAP: str(workers)} if workers > inquiry.cap else {}


def _free(costs: Iterable[Limit]) -> dict[str, str]:
    return dict.fromkeys((limit.value for limit in costs), "0")


def _sets(settings: Mapping[str, str]) -> Iterator[DegreeStep]:
    for name, value in settings.items():
        yield DegreeStep(f"SET {name} = {value}", _FOR_A_SESSION, is_tried=True)


def _option(table: str, workers: int, sizes: Mapping[str, str], *, is_tried: bool) -> DegreeStep:
    instead = " and ".join(f"{name} = {value}" for name, value in sizes.items())
    if is_tried:
        note = f"derived, because it would lock the table; {instead} was tested instead and gives the number"
    elif sizes:
        note = f"derived, not tested: with {instead} alone the table is too small for this number"
    else:
        note = "derived, not tested: it would lock the table"
    return DegreeStep(f"ALTER TABLE {table} SET (parallel_workers = {workers})", note, is_tried=False)


def _pool_steps(pools: Pools, workers: int) -> Iterator[DegreeStep]:
    if workers > pools.max_parallel_workers:
        note = f"{_FOR_A_SESSION}; without it fewer workers are launched than planned"
        yield DegreeStep(f"SET max_parallel_workers = {workers}", note, is_tried=False)
    others = pools.others_in_use.or_else(0)
    if workers + others > pools.max_worker_processes:
        used = f"; {others} of them {'is' if others == 1 else 'are'} used by other workers" if others else ""
        note = f"then restart the server; change standbys first{used}"
        yield DegreeStep(
            f"ALTER SYSTEM SET max_worker_processes = {workers + others}",
            note,
            is_tried=False,
            needs_restart=True,
        )
