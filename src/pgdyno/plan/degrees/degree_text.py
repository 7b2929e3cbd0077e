"""A query's degree as terminal text: the answer, its numbers, and the remedies. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.base.facts import Fact, Unknown
from pgdyno.base.text import counted, wrapped
from pgdyno.postgres.parallel_degree import Cause, Degree, DegreeAdvice, ExplainedGather, Limit, Pools

WIDTH = 100
_INDENT = "  "
_NAME_WIDTH = 34
_LISTED = 10  # a table may have thousands of partitions


def degree_text(degree: Degree, *, width: int = WIDTH) -> str:
    """Return the readable answer, ending with a newline."""
    alternatives = [*_causes(degree.alternatives, width)]
    sections = [
        [wrapped(headline(degree), width)],
        *([*_gather(one, width)] for one in degree.gathers),
        [] if degree.gathers else ["Why no workers", *_causes(degree.causes, width)],
        ["Alternatives, each sufficient alone", *alternatives] if alternatives else [],
        [*_tables(degree)],
        [
            "Settings",
            *(f"{_INDENT}{name:<{_NAME_WIDTH}}  {value}" for name, value in degree.settings.items()),
        ],
        [*_pools(degree, width)],
        [wrapped(f"note: {note}", width) for note in degree.notes],
        [*_advice(degree.advice, width)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def headline(degree: Degree) -> str:
    """Return the answer in one line: ``4 workers planned: max_parallel_workers_per_gather = 4 decided``."""
    text = f"{_workers(degree.planned)} planned: {_decided(degree.causes)}"
    if degree.pool_limit is None:
        return text
    limit = f"{degree.pool_limit} = {degree.settings[degree.pool_limit]}"
    return f"{text}; {degree.launchable} of them can be launched now, limited by {limit}"


def _decided(causes: Sequence[Cause]) -> str:
    """Describe the deciding causes; ``NO_TABLE`` does not count as one."""
    missing = ["no table is read" for cause in causes if cause.limit is Limit.NO_TABLE]
    deciding = [cause for cause in causes if cause.limit is not Limit.NO_TABLE]
    if not deciding:
        return missing[0]
    verb = "" if deciding[0].limit is Limit.NOT_FOUND_OUT else " decided"
    return ", and ".join([f"{' and '.join(cause.what for cause in deciding)}{verb}", *missing])


def _gather(one: ExplainedGather, width: int) -> Iterator[str]:
    gather = one.gather
    over = ", ".join(f"{scan.name} on {scan.relation}" for scan in gather.scans[:3])
    more = f" and {len(gather.scans) - 3} more" if len(gather.scans) > 3 else ""
    yield wrapped(f"{gather.name}: {_workers(gather.workers)}{', ' if over else ''}{over}{more}", width)
    yield from _causes(one.causes, width)
    if one.uncapped_workers is not None and all(cause.limit is not Limit.CAP for cause in one.causes):
        yield f"{_INDENT}without max_parallel_workers_per_gather: {_workers(one.uncapped_workers)}"


def _causes(causes: tuple[Cause, ...], width: int) -> Iterator[str]:
    for cause in causes:
        yield wrapped(f"{cause.what}: {cause.why}", width, _INDENT)
        if cause.remedy:
            yield wrapped(f"to change it: {cause.remedy}", width, 2 * _INDENT)


def _tables(degree: Degree) -> Iterator[str]:
    if degree.tables:
        yield f"{'Tables':<{_NAME_WIDTH + 2}}  pages        parallel_workers"
    largest = sorted(degree.tables, key=lambda table: -table.pages)
    for table in largest[:_LISTED]:
        option = "not set" if table.parallel_workers is None else str(table.parallel_workers)
        yield f"{_INDENT}{table.name:<{_NAME_WIDTH}}  {table.pages:<11,}  {option}"
    if len(largest) > _LISTED:
        yield f"{_INDENT}and {len(largest) - _LISTED} smaller ones"


def _pools(degree: Degree, width: int) -> Iterator[str]:
    pools = degree.pools
    yield "Workers in use now"
    parallel = _in_use(pools.parallel_in_use, pools.max_parallel_workers)
    yield f"{_INDENT}{'parallel':<{_NAME_WIDTH}}  {parallel}"
    yield f"{_INDENT}{'all background workers':<{_NAME_WIDTH}}  {_all_in_use(pools)}"
    if degree.planned and degree.launchable is not None:
        yield wrapped(f"{degree.launchable} of {degree.planned} planned can be launched now", width, _INDENT)


def _in_use(used: Fact[int], of: int) -> str:
    return (
        f"unknown of {of}: {used.value.reason}"
        if isinstance(used.value, Unknown)
        else f"{used.value} of {of}"
    )


def _all_in_use(pools: Pools) -> str:
    parallel, others = pools.parallel_in_use.or_none(), pools.others_in_use.or_none()
    used = "unknown" if parallel is None or others is None else str(parallel + others)
    return f"{used} of {pools.max_worker_processes}"


def _advice(advice: DegreeAdvice | None, width: int) -> Iterator[str]:
    if advice is None:
        return
    if advice.obstacle is not None:
        none = "No statement gives" if advice.is_certain else "No statement was found that gives"
        yield wrapped(f"{none} {_workers(advice.workers)}: {advice.obstacle}", width)
        return
    if not advice.steps:
        yield f"To get {_workers(advice.workers)}: no change needed"
        return
    yield f"To get {_workers(advice.workers)}"
    for step in advice.steps:
        yield f"{_INDENT}{step.statement};"
        yield wrapped(f"-- {'tested; ' if step.is_tried else ''}{step.note}", width, 2 * _INDENT)
    if any(step.statement.startswith("SET ") for step in advice.steps):
        yield f"{_INDENT}to keep a value: ALTER ROLE … SET, ALTER DATABASE … SET or ALTER SYSTEM SET"
    if advice.tried_workers is None:
        yield f"{_INDENT}not tested with EXPLAIN: no setting has the effect of a table's storage parameter"
    else:
        yield f"{_INDENT}with the tested settings, EXPLAIN plans {_workers(advice.tried_workers)}"


def _workers(count: int) -> str:
    return counted(count, "worker")
