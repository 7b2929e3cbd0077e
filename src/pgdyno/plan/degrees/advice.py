"""The shortest list of statements after which a number of workers is planned and launchable.

What SET can do is tried by EXPLAIN before it is advised. An option of a table is not: ALTER TABLE would lock
it. In its place the thresholds of size are set so that the table's size gives the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pgdyno.plan.degrees.inquiry import CAP, Inquiry
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
"""Limits that are values to set; the others lie in the query."""
_FOR_A_SESSION = "for this session"
_NOTHING_LEADS_THERE = "no change of the limits that can be tried leads to this number"


@dataclass(frozen=True)
class _Found:
    steps: tuple[DegreeStep, ...]
    workers: int | None  # by EXPLAIN with the steps or what stands for them; None: not tried


def advise(
    inquiry: Inquiry,
    workers: int,
    main: ExplainedGather | None,
    causes: tuple[Cause, ...],
    pools: Pools,
) -> DegreeAdvice:
    """Return the steps to N workers. ``main`` is the Gather with most of them, or None."""
    if planned_workers(inquiry.plan({})) == workers:
        return DegreeAdvice(workers, tuple(_pool_steps(pools, workers)), workers)
    unknown = [cause for cause in causes if cause.limit is Limit.NOT_FOUND_OUT]
    in_query = [cause for cause in causes if cause.limit not in _NUMBERS and cause not in unknown]
    if in_query and workers:
        # A plan that is cheaper can be forbidden by settings, of which nobody would want the others' cost.
        is_certain = all(cause.limit is not Limit.SERIAL_IS_CHEAPER for cause in in_query)
        return DegreeAdvice(workers, (), None, obstacle=_told(in_query), is_certain=is_certain)
    found = _by_settings(inquiry, workers) or _by_option(inquiry, workers, main, causes)
    if found is None:
        why = "; ".join(filter(None, (_NOTHING_LEADS_THERE, _told(unknown))))
        return DegreeAdvice(workers, (), None, obstacle=why, is_certain=False)
    return DegreeAdvice(workers, (*found.steps, *_pool_steps(pools, workers)), found.workers)


def _told(causes: Iterable[Cause]) -> str:
    return "; ".join(f"{cause.what}: {cause.why}" for cause in causes)


def _by_settings(inquiry: Inquiry, workers: int) -> _Found | None:
    """Return the fewest settings of a session that lead there, if any do."""
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
    """Return a table's option, with the settings that it takes besides."""
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
    """Return the option of the table that workers would share if size did not count, if it leads there."""
    # Capped in any case: the option gives this number, where the size would give more.
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
        # Nearer to what the option does: other tables stay too small.
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
    """Return a threshold with which the size of the one table that is shared gives this number."""
    if shared.is_append or not all(scan.name.endswith("Seq Scan") for scan in shared.scans):
        return None
    threshold = threshold_for(table.pages, workers)
    return None if threshold is None else min(threshold, inquiry.pages(Limit.TABLE_SIZE))


def _with_option(inquiry: Inquiry, main: ExplainedGather | None, causes: tuple[Cause, ...]) -> str | None:
    """Return the table that decides if it has the option already: no threshold of size stands for that."""
    if main is None:
        return next((cause.table for cause in causes if cause.limit is Limit.RELOPTION), None)
    target = _largest(inquiry, main.gather)
    return None if target is None or target.parallel_workers is None else target.name


def _largest(inquiry: Inquiry, gather: Gather) -> Table | None:
    """Return the table whose option gives the number: of an Append's children any does, so the largest."""
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
        note = f"derived: it would lock the table; tried in its place: {instead}, with the same number"
    elif sizes:
        note = f"derived from the rule, not tried: with {instead} alone the table is too small for so many"
    else:
        note = "derived from the rule, not tried: it would lock the table"
    return DegreeStep(f"ALTER TABLE {table} SET (parallel_workers = {workers})", note, is_tried=False)


def _pool_steps(pools: Pools, workers: int) -> Iterator[DegreeStep]:
    if workers > pools.max_parallel_workers:
        note = f"{_FOR_A_SESSION}; without it fewer are launched than are planned"
        yield DegreeStep(f"SET max_parallel_workers = {workers}", note, is_tried=False)
    others = pools.others_in_use.or_else(0)
    if workers + others > pools.max_worker_processes:
        note = "then restart the server; on its standbys first" + (
            f"; {others} of them {'is' if others == 1 else 'are'} in use by others" if others else ""
        )
        yield DegreeStep(
            f"ALTER SYSTEM SET max_worker_processes = {workers + others}",
            note,
            is_tried=False,
            needs_restart=True,
        )
