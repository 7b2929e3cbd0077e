"""The limits that keep a plan serial, or the reasons that rule out parallel workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pgdyno.plan.degrees.causes import CAP, Inquiry, reloption, undetermined
from pgdyno.postgres.parallel_degree import Cause, Gather, Hazard, Limit, Scan, Table
from pgdyno.postgres.planner.parallel_plan import Plan, gathers, has_node, planned_workers, scans

DEFAULT_CAP = 2  # PostgreSQL's own, in all versions since 10
_FUZZ = 1.01  # a path must be cheaper by this factor to be preferred: STD_FUZZ_FACTOR in pathnode.c
_IN_ORDER = (Limit.CAP, Limit.TABLE_SIZE, Limit.INDEX_SIZE, Limit.SETUP_COST, Limit.TUPLE_COST)
_PUT_BACK = (Limit.TUPLE_COST, Limit.INDEX_SIZE, Limit.SETUP_COST, Limit.TABLE_SIZE)
"""The order in which relaxed limits are restored, to find those that may stay in force."""
_NO_INDEX = dict.fromkeys(
    ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan", "enable_tidscan"), "off"
)
_EXPENSIVE_ROWS = {"cpu_tuple_cost": "1000", "cpu_operator_cost": "1000"}
_FOREIGN = "f"
_LOCKED_ROWS, _WRITES = "LockRows", "ModifyTable"
_NEVER_SHARED = frozenset({"Sample Scan", "Tid Scan", "Tid Range Scan"})


def why_none(inquiry: Inquiry, plan: Plan) -> tuple[tuple[Cause, ...], tuple[Cause, ...]]:
    """Return the causes that together keep a plan serial, and alternatives, each sufficient alone."""
    tables = inquiry.tables(scans(plan))
    relaxed = _relaxed(inquiry, _IN_ORDER)
    free = inquiry.plan(inquiry.undebugged(relaxed))
    if not planned_workers(free):
        return _forbidden(inquiry, plan, tables, relaxed), ()
    if barred := _barred(inquiry, tables.values()):
        return (*_cap_of_none(inquiry), *barred), ()
    needed = _needed(inquiry, tables.values())
    causes = tuple(_limit(inquiry, one, needed, plan) for one in needed)
    return causes, _alternatives(inquiry, needed, plan)


def _relaxed(inquiry: Inquiry, limits: Iterable[Limit]) -> dict[str, str]:
    settings = dict.fromkeys((limit.value for limit in limits), "0")
    if CAP in settings:
        settings[CAP] = str(inquiry.cap or DEFAULT_CAP)
    return settings


def _plans_workers(inquiry: Inquiry, limits: Sequence[Limit]) -> bool:
    return planned_workers(inquiry.plan(inquiry.undebugged(_relaxed(inquiry, limits)))) > 0


def _needed(inquiry: Inquiry, tables: Iterable[Table]) -> tuple[Limit, ...]:
    """Return a minimal set of limits that, changed together, give a parallel plan.

    If a table is large enough for workers, the cost limits are preferred to the size threshold. A lower
    threshold would give more workers, which might pay off and so hide the cost limit.
    """
    needed = [limit for limit in _IN_ORDER if limit is not Limit.CAP or inquiry.cap == 0]
    is_large = any(table.pages >= inquiry.pages(Limit.TABLE_SIZE) for table in tables)
    first = (Limit.TABLE_SIZE,) if is_large else ()
    for limit in (*first, *_PUT_BACK):
        rest = [one for one in needed if one is not limit]
        if _plans_workers(inquiry, rest):
            needed = rest
    return tuple(needed)


def _alternatives(inquiry: Inquiry, needed: Sequence[Limit], plan: Plan) -> tuple[Cause, ...]:
    if len(needed) != 1 or inquiry.cap == 0:
        return ()
    others = (limit for limit in _PUT_BACK if limit not in needed)
    return tuple(
        _limit(inquiry, other, (other,), plan) for other in others if _plans_workers(inquiry, [other])
    )


def _limit(inquiry: Inquiry, limit: Limit, needed: Sequence[Limit], plan: Plan) -> Cause:
    if limit is Limit.CAP:
        return _cap_of_none(inquiry)[0]
    parallel = inquiry.plan(inquiry.undebugged(_relaxed(inquiry, needed)))
    gather = gathers(parallel)[0]
    if limit in (Limit.TABLE_SIZE, Limit.INDEX_SIZE):
        return _too_small(inquiry, limit, gather)
    return _too_expensive(inquiry, limit, needed, (plan, parallel))


def _cap_of_none(inquiry: Inquiry) -> tuple[Cause, ...]:
    if inquiry.cap:
        return ()
    return (
        Cause(
            Limit.CAP,
            inquiry.shown(Limit.CAP),
            "it allows no workers",
            f"SET {CAP} = {DEFAULT_CAP}, PostgreSQL's default",
        ),
    )


def _too_small(inquiry: Inquiry, limit: Limit, gather: Gather) -> Cause:
    tables = inquiry.tables(gather.scans)
    threshold = inquiry.pages(limit)
    scan = gather.scans[0] if gather.scans else None
    table = tables.get(scan.relation) if scan is not None else None
    if scan is None or table is None:
        why = f"no scan reaches {threshold:,} pages"
    elif limit is Limit.INDEX_SIZE:
        why = f"less than {threshold:,} pages of index {scan.index} are scanned"
    elif table.pages >= threshold:
        why = f"{table.name} has {table.pages:,} pages; only more workers than this size gives would pay off"
    elif scan.name.endswith("Seq Scan"):
        why = f"{table.name} has {table.pages:,} pages, and the first worker needs {threshold:,}"
    else:
        why = f"less than {threshold:,} pages of {table.name} are scanned"
    remedy = f"SET {limit} = 0"
    if table is not None and not table.is_system:
        remedy = f"ALTER TABLE {table.name} SET (parallel_workers = N), or {remedy}"
    return Cause(limit, inquiry.shown(limit), why, remedy)


def _too_expensive(
    inquiry: Inquiry, limit: Limit, needed: Sequence[Limit], plans: tuple[Plan, Plan]
) -> Cause:
    serial, parallel = plans
    gather = gathers(parallel)[0]
    is_setup = limit is Limit.SETUP_COST
    units = 1 if is_setup else max(gather.rows, 1)
    cost, free_cost = float(serial["Total Cost"]), float(parallel["Total Cost"])
    own = float(inquiry.settings[limit.value].setting) * units
    what = "starting them" if is_setup else f"transferring {gather.rows:,} rows"
    parallel_cost = f"with workers {free_cost:,.0f}, plus {own:,.0f} for {what}"
    why = f"without workers the plan costs {cost:,.0f}; {parallel_cost}"
    highest = _highest(inquiry, limit, needed, (cost / _FUZZ - free_cost) / units)
    return Cause(limit, inquiry.shown(limit), why, f"SET {limit} = {highest}")


def _highest(inquiry: Inquiry, limit: Limit, needed: Sequence[Limit], estimate: float) -> str:
    """Return the highest cost, to three digits, that still gives workers; 0 if several limits interact."""
    if len(needed) > 1 or estimate <= 0:
        return "0"
    digits = f"{estimate * 0.999:.3g}"  # 0.999: a step to the safe side
    value = f"{float(digits):.10f}".rstrip("0").rstrip(".")
    tried = inquiry.plan(inquiry.undebugged({limit.value: value}))
    return value if planned_workers(tried) else "0"


def _barred(inquiry: Inquiry, tables: Iterable[Table]) -> tuple[Cause, ...]:
    """Return the reasons that keep tables of sufficient size from being scanned in parallel."""
    threshold = inquiry.pages(Limit.TABLE_SIZE)
    return tuple(cause for table in tables if table.pages >= threshold for cause in _bars(table))


def _bars(table: Table) -> tuple[Cause, ...]:
    if table.is_temporary:
        why = "workers cannot access a session's temporary tables"
        return (
            Cause(Limit.TEMPORARY_TABLE, f"the temporary table {table.name}", why, "use an UNLOGGED table"),
        )
    if table.parallel_workers == 0:
        return (reloption(table),)
    if table.kind == _FOREIGN:
        why = "its foreign data wrapper does not support parallel scans"
        return (Cause(Limit.FOREIGN_TABLE, f"the foreign table {table.name}", why, None),)
    return ()


def _forbidden(
    inquiry: Inquiry, plan: Plan, tables: Mapping[str, Table], free: Mapping[str, str]
) -> tuple[Cause, ...]:
    """Return the reasons that rule out workers regardless of size and cost settings."""
    tested = inquiry.plan({**free, inquiry.debug.name: "on"})
    is_safe = any(gather.is_single_copy for gather in gathers(tested))
    hazards = () if is_safe else inquiry.hazards(plan)
    of_query = [*_of_statement(plan), *_functions(hazards, is_unsafe=True)]
    if not scans(plan):
        of_query.append(
            Cause(
                Limit.NO_TABLE,
                "the lack of a table",
                "workers divide the pages of tables and indexes; this query scans none",
                None,
            )
        )
    found = [*of_query, *(cause for table in tables.values() for cause in _bars(table))]
    if not found:
        found = [*_serial_is_cheaper(inquiry, plan, tables.values(), free)]
    if not found:
        found = [*_functions(hazards, is_unsafe=False), *_kinds(plan)]
    return (*(found or [_nothing_found(plan, is_safe=is_safe)]), *_cap_of_none(inquiry))


def _of_statement(plan: Plan) -> tuple[Cause, ...]:
    causes = []
    if has_node(plan, _WRITES):
        why = "a query with a data-modifying WITH is never planned with workers"
        causes.append(Cause(Limit.WRITES, "the data-modifying WITH", why, "write in a separate statement"))
    if has_node(plan, _LOCKED_ROWS):
        why = "a query that locks rows is never planned with workers"
        causes.append(Cause(Limit.ROW_LOCKS, "FOR UPDATE or FOR SHARE", why, "remove the locking clause"))
    return tuple(causes)


def _functions(hazards: Iterable[Hazard], *, is_unsafe: bool) -> tuple[Cause, ...]:
    limit = Limit.UNSAFE_FUNCTION if is_unsafe else Limit.RESTRICTED_FUNCTION
    effect = (
        "a query that may call such a function is never planned with workers"
        if is_unsafe
        else "only the leader may call it, so its scan is not parallel"
    )
    return tuple(
        Cause(
            limit,
            f"the {limit} {', '.join(one.functions)}",
            effect if one.is_certain else f"{effect}; others named {one.called_as} have a different label",
            None if one.is_builtin else f"ALTER FUNCTION {one.functions[0]} PARALLEL SAFE, if it is safe",
        )
        for one in hazards
        if one.is_unsafe is is_unsafe
    )


def _serial_is_cheaper(
    inquiry: Inquiry, plan: Plan, tables: Iterable[Table], free: Mapping[str, str]
) -> tuple[Cause, ...]:
    """Return the cause that the serial plan is cheapest; empty if none of the tests below shows it.

    The plan must become parallel without indexes or with expensive rows, or its tables must be empty.
    """
    used = ", ".join(dict.fromkeys(_shown(scan) for scan in scans(plan)))
    why = f"it costs {float(plan['Total Cost']):,.0f} ({used}); "
    without = inquiry.plan(inquiry.undebugged({**free, **_NO_INDEX}))
    if planned_workers(without):
        other = float(without["Total Cost"])
        why += f"with workers {other:,.0f}, even if starting them and transferring rows were free"
    elif planned_workers(inquiry.plan(inquiry.undebugged({**free, **_EXPENSIVE_ROWS}))):
        why += "workers would save less than 1 %, which the planner ignores"
    elif all(table.pages == 0 for table in tables):
        why += "the tables are empty"
    else:
        return ()
    return (Cause(Limit.SERIAL_IS_CHEAPER, "the cost of the plan without workers", why, None),)


def _kinds(plan: Plan) -> tuple[Cause, ...]:
    return tuple(
        Cause(Limit.KIND_OF_SCAN, f"the {_shown(scan)}", "it is never parallel in versions up to 18", None)
        for scan in scans(plan)
        if scan.name in _NEVER_SHARED
    )


def _shown(scan: Scan) -> str:
    return f"{scan.name} on {scan.relation}"


def _nothing_found(plan: Plan, *, is_safe: bool) -> Cause:
    kinds = ", ".join(dict.fromkeys(_shown(scan) for scan in scans(plan)))
    safety = "the query is parallel safe" if is_safe else "part of the query is not parallel safe"
    return undetermined(f"{safety}, and changing the limits gives no workers; it is planned as {kinds}")
