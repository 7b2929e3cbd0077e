"""Find the limit that decided a Gather's workers, by planning with one limit changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pgdyno.postgres.guc import Guc
from pgdyno.postgres.parallel_degree import (
    MAX_WORKERS,
    Cause,
    ExplainedGather,
    Gather,
    Hazard,
    Limit,
    Scan,
    SizeRule,
    Table,
)
from pgdyno.postgres.planner.parallel_plan import Plan, same_gather, workers_by_children, workers_by_size

_DEBUG_BEFORE_16 = "force_parallel_mode"
CAP = Limit.CAP.value
UNCAPPED = {CAP: str(MAX_WORKERS)}
FREE_OF_COST = {Limit.SETUP_COST.value: "0", Limit.TUPLE_COST.value: "0"}


@dataclass(frozen=True)
class Inquiry:
    """``plan`` returns the plan with some settings changed; ``tables`` and ``hazards`` read the catalogs.

    ``settings`` are the settings in effect for the statement, by name.
    """

    plan: Callable[[Mapping[str, str]], Plan]
    tables: Callable[[Iterable[Scan]], Mapping[str, Table]]
    hazards: Callable[[Plan], tuple[Hazard, ...]]
    settings: Mapping[str, Guc]

    @property
    def cap(self) -> int:
        """The maximum number of workers per Gather."""
        return int(self.settings[CAP].setting)

    @property
    def debug(self) -> Guc:
        """The setting ``debug_parallel_query``, named ``force_parallel_mode`` before 16."""
        return self.settings.get(Limit.DEBUG.value) or self.settings[_DEBUG_BEFORE_16]

    def pages(self, size: Limit) -> int:
        """Return a size threshold in pages, the setting's unit."""
        return int(self.settings[size.value].setting)

    def shown(self, limit: Limit) -> str:
        """Return a setting with its value: ``parallel_setup_cost = 1000``."""
        guc = self.debug if limit is Limit.DEBUG else self.settings[limit.value]
        return f"{guc.name} = {guc.display()}"

    def without_debug(self) -> Plan:
        """Return the plan with ``debug_parallel_query`` off."""
        return self.plan(self.undebugged({}))

    def undebugged(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Return the settings to test, with ``debug_parallel_query`` off."""
        return settings if self.debug.setting == "off" else {**settings, self.debug.name: "off"}


_NOT_A_TABLE = Table(
    "?", is_system=True, kind="?", is_temporary=False, pages=0, parallel_workers=None
)  # scanned by an extension's custom scan


def explain_gather(inquiry: Inquiry, gather: Gather) -> ExplainedGather:
    """Return which limit decided the workers of a Gather that was not forced by ``debug_parallel_query``."""
    known = inquiry.tables(gather.scans)
    tables = tuple(known.get(scan.relation, _NOT_A_TABLE) for scan in gather.scans)
    without = same_gather(inquiry.plan(inquiry.undebugged(UNCAPPED)), gather)
    uncapped = None if without is None else without.workers
    deciding = _deciding(inquiry, gather, tables, uncapped)
    rule = None if deciding is None else _rule(inquiry, gather, *deciding, uncapped)
    if gather.workers == inquiry.cap and _is_capped(inquiry, gather, tables, uncapped):
        cause = _cap(inquiry, uncapped, deciding and deciding[1], rule)
    elif _takes_more_for_children(inquiry, gather):
        cause = _children(inquiry, gather)
    elif deciding is None:
        cause = undetermined(f"no known scan decides the workers of {gather.name}")
    else:
        cause = _of_scan(inquiry, *deciding, rule)
    return ExplainedGather(gather, tables, (cause,), rule, uncapped)


def by_size(table: Table, rule: SizeRule) -> str:
    """Describe the size rule with its numbers."""
    steps = (
        f"one worker from {max(rule.threshold, 1):,} and one more for each tripling: {rule.workers} from "
        f"{rule.from_pages:,}, {rule.workers + 1} from {rule.next_pages:,}"
    )
    if rule.pages is not None:
        return f"{table.name} has {rule.pages:,} pages; {steps}"
    what = "pages" if rule.setting is Limit.TABLE_SIZE else "pages of an index"
    return f"the planner expects to scan only some {what} (EXPLAIN does not show how many); {steps}"


def reloption(table: Table) -> Cause:
    """Return the cause for a table's storage parameter ``parallel_workers``."""
    return Cause(
        Limit.RELOPTION,
        f"parallel_workers = {table.parallel_workers} of {table.name}",
        "the storage parameter overrides the table's size",
        f"ALTER TABLE {table.name} SET (parallel_workers = N); after RESET (parallel_workers) size decides",
        table.name,
    )


def undetermined(why: str) -> Cause:
    """Return the cause if no deciding limit was found."""
    return Cause(Limit.NOT_FOUND_OUT, "an undetermined limit", why, None)


def _deciding(
    inquiry: Inquiry, gather: Gather, tables: tuple[Table, ...], uncapped: int | None
) -> tuple[Scan, Table] | None:
    """Return the scan that decides the number of workers: of an Append's children, the one with the most."""
    pairs = list(zip(gather.scans, tables, strict=True))
    if not gather.is_append:
        return pairs[0] if pairs else None
    wanted = uncapped or gather.workers

    def nearness(pair: tuple[Scan, Table]) -> tuple[bool, int]:
        own = _own_workers(inquiry, *pair, is_child=True)
        return own == wanted, pair[1].pages

    return max(pairs, key=nearness, default=None)


def _own_workers(inquiry: Inquiry, scan: Scan, table: Table, *, is_child: bool) -> int | None:
    """Return a scan's workers by PostgreSQL's rules; None if EXPLAIN does not show enough."""
    if table.parallel_workers is not None:
        return table.parallel_workers
    if not _reads_all_pages(scan):
        return None
    return workers_by_size(table.pages, inquiry.pages(Limit.TABLE_SIZE), is_child=is_child)


def _reads_all_pages(scan: Scan) -> bool:
    return scan.name.endswith("Seq Scan")


def _rule(
    inquiry: Inquiry, gather: Gather, scan: Scan, table: Table, uncapped: int | None
) -> SizeRule | None:
    """Return the size rule; None if the table's storage parameter overrides it."""
    if table.parallel_workers is not None:
        return None
    seen = uncapped or gather.workers
    own = _own_workers(inquiry, scan, table, is_child=gather.is_append)
    is_exact = own is not None and (uncapped is None or own == uncapped or gather.is_append)
    setting = _deciding_size(inquiry, gather, scan)
    return SizeRule(
        setting, table.pages if is_exact else None, inquiry.pages(setting), own if own and is_exact else seen
    )


def _deciding_size(inquiry: Inquiry, gather: Gather, scan: Scan) -> Limit:
    """Return which size decides: for an index scan, the one that allows fewer workers."""
    if scan.index is None:
        return Limit.TABLE_SIZE
    if scan.name.endswith("Index Only Scan"):
        return Limit.INDEX_SIZE
    without = inquiry.undebugged({**UNCAPPED, Limit.TABLE_SIZE.value: "0"})
    changed = same_gather(inquiry.plan(without), gather)
    is_table = changed is not None and changed.workers > gather.workers
    return Limit.TABLE_SIZE if is_table else Limit.INDEX_SIZE


def _is_capped(inquiry: Inquiry, gather: Gather, tables: tuple[Table, ...], uncapped: int | None) -> bool:
    """Whether the cap reduces the workers: by the uncapped plan, or by the rules if that plan differs."""
    if uncapped is not None:
        return uncapped > gather.workers
    own = [
        _own_workers(inquiry, scan, table, is_child=gather.is_append)
        for scan, table in zip(gather.scans, tables, strict=True)
    ]
    return any(workers is None or workers > gather.workers for workers in own)


def _cap(inquiry: Inquiry, uncapped: int | None, table: Table | None, rule: SizeRule | None) -> Cause:
    wanted = uncapped or (rule.workers if rule else None)
    why = f"{wanted} workers without it" if wanted else "the scan reaches it"
    if rule is not None and table is not None and rule.pages is not None and rule.workers == wanted:
        why += f": {by_size(table, rule)}"
    elif table is not None and table.parallel_workers is not None:
        why += f": parallel_workers = {table.parallel_workers} of {table.name}"
    remedy = f"SET max_parallel_workers_per_gather = {wanted or 'N'}"
    return Cause(Limit.CAP, inquiry.shown(Limit.CAP), why, remedy)


def _takes_more_for_children(inquiry: Inquiry, gather: Gather) -> bool:
    """Whether a Parallel Append has more workers than its largest child would get alone."""
    if not gather.is_append:
        return False
    off = {Limit.CHILDREN.value: "off", **FREE_OF_COST}
    without = same_gather(inquiry.plan(inquiry.undebugged(off)), gather)
    return without is None or without.workers < gather.workers


def _children(inquiry: Inquiry, gather: Gather) -> Cause:
    count = len(gather.scans)
    number = f" ({count} scans)" if workers_by_children(count) == gather.workers else ""
    return Cause(
        Limit.CHILDREN,
        "the number of children of a Parallel Append",
        f"with {inquiry.shown(Limit.CHILDREN)} it gets at least the binary logarithm of the number of its "
        f"children{number} plus one, whatever their size: {gather.workers}",
        "ALTER TABLE … SET (parallel_workers = N) on one of them, for more workers",
    )


def _of_scan(inquiry: Inquiry, scan: Scan, table: Table, rule: SizeRule | None) -> Cause:
    if rule is None:
        return reloption(table)
    thing = table.name if rule.setting is Limit.TABLE_SIZE else f"index {scan.index}"
    return Cause(
        rule.setting,
        f"the size of {thing}",
        f"{by_size(table, rule)} ({inquiry.shown(rule.setting)})",
        _size_remedy(table, rule),
    )


def _size_remedy(table: Table, rule: SizeRule) -> str:
    if table.is_system:  # ALTER TABLE refuses to set its storage parameters
        return f"SET {rule.setting.value} to a lower value, for more workers"
    return f"ALTER TABLE {table.name} SET (parallel_workers = N)"
