"""The memory proof: a server's worst-case memory, item by item, against the smallest limit.

Worst case: every allowed connection is open, each runs one sort and one hash table at their full
allowance, all parallel and autovacuum workers run, one session builds an index, and every process has
touched all of shared_buffers. Roles and databases with larger allowances of their own have all the sessions
they may have. It is meant to be read: each item carries its formula with the figures.

What is not in it, because it is rare in transaction processing or bounded elsewhere: temp_buffers,
logical decoding, extensions' own memory, and statements with many sorts and hash tables at once.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from decimal import Decimal

from pgdyno.base import numbers
from pgdyno.base.errors import MemoryProofError
from pgdyno.base.facts import Fact
from pgdyno.model.plans.plan import REFUSED_ABOVE, MemoryItem, MemoryProof
from pgdyno.plan.engine.effective import (
    INITDB_CHOICES,
    EffectiveSettings,
    OwnSessions,
    largest_override,
    own_sessions,
    scope_of,
    with_largest_overrides,
)
from pgdyno.plan.engine.resources import Resources
from pgdyno.postgres.guc import format_bytes

PLANNED_BELOW = 0.80
"""Share that levers plan up to: what the estimates below may be wrong by stays free."""

MIB = 1 << 20
PRIVATE_BYTES = 6 * MIB
"""A backend's own memory besides work_mem. Measured on PostgreSQL 18, private dirty pages: 1.4 MB after
connecting, 6.1 MB after reading most of the system catalogues."""

SHARED_OVERHEAD_SHARE, WAL_SEGMENT_BYTES = 0.03, 16 * MIB
"""Shared memory that comes with larger shared_buffers: descriptors and the lookup table, as a share, and
wal_buffers, which grow to a segment. Measured with ``postgres -C shared_memory_size`` on 15 and 18 from
128 MB to 16 GB."""

SHARED_BYTES_PER_CONNECTION = MIB // 10
"""Measured the same way: 16 MB for 200 connections more on 18."""

SHARED_BUFFERS_AT_INITDB_BYTES, CONNECTIONS_AT_INITDB, SHARED_OVERHEAD_BYTES = 128 * MIB, 100, 24 * MIB
"""Where the server does not tell its own (before 15), reckoned from initdb's settings: 22 MB on 18."""

MAINTENANCE_SESSIONS = 1
"""How many sessions use maintenance_work_mem at once besides autovacuum: one person builds one index."""

_AMOUNTS = (
    "shared_buffers",
    "work_mem",
    "hash_mem_multiplier",
    "maintenance_work_mem",
    "autovacuum_work_mem",
)
"""Settings that somebody may have set to too much; the number of connections is stated by the user."""

PAGE_TABLE_ENTRY_BYTES = 8
DEFAULT_PAGE_BYTES = 4096


def memory_proof(settings: EffectiveSettings, resources: Resources) -> MemoryProof | None:
    """Return the worst case of a server with these settings; None if no limit is known."""
    limit = resources.memory_bytes.or_none()
    if limit is None:
        return None
    items = (
        MemoryItem(
            "shared_buffers", settings.display("shared_buffers"), settings.size_bytes("shared_buffers")
        ),
        _other_shared_memory(settings),
        *_sessions(settings),
        _maintenance(settings),
        _autovacuum(settings),
        _page_tables(settings, resources),
    )
    return MemoryProof(items, limit, resources.memory_bytes.source)


def check_memory_proof(proof: MemoryProof, settings: EffectiveSettings, resources: Resources) -> None:
    """Refuse a plan that does not fit into memory.

    Raises: MemoryProofError whose detail lists the sum and whose hint says what would fit.
    """
    if proof.share <= REFUSED_ABOVE:
        return
    hint, connections = _way_out(proof, settings, resources)
    raise MemoryProofError(
        f"the worst case of {numbers.size(proof.total_bytes)} is {numbers.share(proof.share, 0)} of the "
        f"{numbers.size(proof.limit_bytes)} this server may use; above {numbers.share(REFUSED_ABOVE)} "
        "is refused",
        detail="\n".join([*map(item_line, proof.items), f"the limit was read from {proof.limit_source}"]),
        hint=hint,
        connections=connections,
    )


def item_line(item: MemoryItem) -> str:
    """Return one addend as ``SIZE  NAME: FORMULA``."""
    return f"{numbers.size(item.size_bytes):>9}  {item.name}: {item.formula}"


def shared_memory_bytes(settings: EffectiveSettings) -> int:
    """Estimate the main shared memory segment, from the server's present one if known.

    From 15 on it is a setting; before, what pg_shmem_allocations adds up to, which superusers see.
    """
    return settings.size_bytes("shared_buffers") + _other_shared_memory(settings).size_bytes


def _other_shared_memory(settings: EffectiveSettings) -> MemoryItem:
    found = EffectiveSettings(settings.server)
    found_bytes = found.size_bytes("shared_buffers")
    told_bytes = settings.server.shared_memory_bytes.or_none()
    if found.has("shared_memory_size"):
        now_bytes = found.size_bytes("shared_memory_size") - found_bytes
    elif told_bytes is not None:
        now_bytes = told_bytes - found_bytes
    else:
        now_bytes = SHARED_OVERHEAD_BYTES + _overhead_of(found_bytes - SHARED_BUFFERS_AT_INITDB_BYTES)
        now_bytes += (
            int(found.number("max_connections") - CONNECTIONS_AT_INITDB) * SHARED_BYTES_PER_CONNECTION
        )
    new_connections = int(settings.number("max_connections") - found.number("max_connections"))
    size_bytes = now_bytes + _overhead_of(settings.size_bytes("shared_buffers") - found_bytes)
    size_bytes += new_connections * SHARED_BYTES_PER_CONNECTION
    formula = (
        f"{numbers.size(now_bytes)} now, and {numbers.share(SHARED_OVERHEAD_SHARE)} of what "
        "shared_buffers grows by"
    )
    return MemoryItem("other shared memory", formula, max(size_bytes, 0))


def _overhead_of(grown_bytes: int) -> int:
    """Return the memory that grows with shared_buffers."""
    return int(SHARED_OVERHEAD_SHARE * grown_bytes) + (WAL_SEGMENT_BYTES if grown_bytes > 0 else 0)


def _sessions(settings: EffectiveSettings) -> tuple[MemoryItem, ...]:
    """Return the memory of connections and parallel workers; exceptions are listed separately."""
    connections, workers = int(settings.number("max_connections")), _parallel_worker_count(settings)
    own = own_sessions(settings) or OwnSessions(0, 0, "")
    own_workers = min(own.workers, workers)
    private = f"{connections} × {numbers.size(PRIVATE_BYTES)} of private memory"
    items = [
        MemoryItem("connections", private, connections * PRIVATE_BYTES),
        _work_of_connections("connections' work_mem", settings, connections - own.count),
        _work_of_workers("parallel workers", settings, workers - own_workers),
    ]
    if own.count:
        larger = with_largest_overrides(settings)
        items += [
            _work_of_connections(f"work_mem of {own.owners}", larger, own.count),
            _work_of_workers(f"parallel workers of {own.owners}", larger, own_workers),
        ]
    return tuple(item for item in items if item.size_bytes)


def _work_of_connections(name: str, settings: EffectiveSettings, connections: int) -> MemoryItem:
    formula = f"{connections} × {_work_formula(settings)}"
    if not settings.server.overrides.is_known:
        formula += "; settings of roles and databases are not known"
    return MemoryItem(name, formula, connections * _work_bytes(settings))


def _work_of_workers(name: str, settings: EffectiveSettings, workers: int) -> MemoryItem:
    formula = f"{workers} × ({numbers.size(PRIVATE_BYTES)} + {_work_formula(settings)})"
    return MemoryItem(name, formula, workers * (PRIVATE_BYTES + _work_bytes(settings)))


def _work_bytes(settings: EffectiveSettings) -> int:
    """Return one sort, and one hash table, which hash_mem_multiplier allows more."""
    allowances = 1 + Decimal(settings.text("hash_mem_multiplier"))
    return int(settings.size_bytes("work_mem") * allowances)


def _work_formula(settings: EffectiveSettings) -> str:
    multiplier = Decimal(settings.text("hash_mem_multiplier"))
    return f"{settings.display('work_mem')} × (1 for a sort + {multiplier} for a hash table)"


def _parallel_worker_count(settings: EffectiveSettings) -> int:
    allowed = with_largest_overrides(settings).number("max_parallel_workers")
    return int(min(allowed, settings.number("max_worker_processes")))


def _maintenance(settings: EffectiveSettings) -> MemoryItem:
    larger = with_largest_overrides(settings)
    size_bytes = MAINTENANCE_SESSIONS * larger.size_bytes("maintenance_work_mem")
    formula = f"{MAINTENANCE_SESSIONS} × {larger.display('maintenance_work_mem')}"
    return MemoryItem("building an index", formula, size_bytes)


def _autovacuum(settings: EffectiveSettings) -> MemoryItem:
    """Return autovacuum's memory. Its workers use the database's maintenance_work_mem if there is one."""
    workers = int(settings.number("autovacuum_max_workers"))
    name = "autovacuum_work_mem" if settings.number("autovacuum_work_mem") >= 0 else "maintenance_work_mem"
    larger = with_largest_overrides(settings)
    formula = f"{workers} × {larger.display(name)} ({name})"
    return MemoryItem("autovacuum workers", formula, workers * larger.size_bytes(name))


def _page_tables(settings: EffectiveSettings, resources: Resources) -> MemoryItem:
    """Return the page tables that map shared_buffers in every process: 2 MB per GB with 4 kB pages."""
    processes = int(settings.number("max_connections") + settings.number("autovacuum_max_workers"))
    processes += _parallel_worker_count(settings)
    page_bytes = resources.page_bytes.or_else(DEFAULT_PAGE_BYTES)
    if will_use_huge_pages(settings, resources):
        page_bytes = resources.huge_pages.value.page_bytes  # type: ignore[union-attr]
    size_bytes = processes * PAGE_TABLE_ENTRY_BYTES * -(-settings.size_bytes("shared_buffers") // page_bytes)
    formula = (
        f"{processes} processes × {PAGE_TABLE_ENTRY_BYTES} bytes per {format_bytes(page_bytes)} "
        f"of {settings.display('shared_buffers')}"
    )
    return MemoryItem("page tables", formula, size_bytes)


def will_use_huge_pages(settings: EffectiveSettings, resources: Resources) -> bool:
    """Whether shared memory will lie on explicit huge pages: allowed, and the pool is known to suffice."""
    pool = resources.huge_pages.or_none()
    if pool is None or settings.text("huge_pages") == "off":
        return False
    return pool.usable * pool.page_bytes >= shared_memory_bytes(settings)


def _way_out(proof: MemoryProof, settings: EffectiveSettings, resources: Resources) -> tuple[str, int | None]:
    """Return a hint on values that would fit, and how many connections would if they alone are too many."""
    if hint := _hint_on_override(settings, resources) or _hint_on_value(settings, resources):
        return hint, None
    found, fitting = _fitting_connections(settings, resources)
    if fitting is not None:
        return (
            f"{fitting} connections would fit instead of {found}: state how many you need with "
            f"--connections {fitting}, or put a connection pooler in front of the server"
        ), fitting
    largest = max(proof.items, key=lambda item: item.size_bytes)
    needed = numbers.size(proof.total_bytes / REFUSED_ABOVE)
    return f"lower the largest part, {largest.name}, or give the server {needed} of memory", None


def _hint_on_override(settings: EffectiveSettings, resources: Resources) -> str | None:
    """Name the setting of a role or database that is too much, if without all such settings it would fit."""
    override = largest_override(settings)
    server = replace(settings.server, overrides=Fact((), settings.server.overrides.source))
    without = memory_proof(EffectiveSettings(server, settings.planned), resources)
    if override is None or without is None or without.share > REFUSED_ABOVE:
        return None
    whose = f'ROLE "{override.role}"' if override.role else f'DATABASE "{override.database}"'
    bound = f", or bound its sessions: ALTER {whose} CONNECTION LIMIT …"
    is_for_all = override.role is None and override.database is None
    setting = f"{override.name} = {override.value} of {scope_of(override)}"
    return f"{setting} is too much for so many sessions: lower it{'' if is_for_all else bound}"


def _hint_on_value(settings: EffectiveSettings, resources: Resources) -> str | None:
    """Name the server's own value that is too much, if with its default instead everything would fit."""
    totals = {
        name: proof.total_bytes
        for name in _AMOUNTS
        if (default := _lower_default(settings, name)) is not None
        and (proof := memory_proof(settings.plus({name: default}), resources)) is not None
        and proof.share <= PLANNED_BELOW
    }
    if not totals:
        return None
    name = min(totals, key=lambda one: totals[one])
    fitting = _largest_fitting(name, settings, resources)
    return f"{name} = {settings.display(name)} is too much: with {name} = {fitting} it would fit"


def _lower_default(settings: EffectiveSettings, name: str) -> str | None:
    """Return a setting's default if the server's owner has set it to more, and no lever plans it."""
    guc = settings.guc(name)
    default = INITDB_CHOICES.get(name, guc.boot_val)
    if name in settings.planned or default is None or Decimal(guc.setting) <= Decimal(default):
        return None
    return default


def _largest_fitting(name: str, settings: EffectiveSettings, resources: Resources) -> str:
    """Return the largest value that fits of those that come from halving the present one."""
    guc = settings.guc(name)
    least, value = Decimal(INITDB_CHOICES.get(name, guc.boot_val or "0")), Decimal(guc.setting)
    while value > least:
        value = value / 2 if guc.vartype == "real" else value // 2
        proof = memory_proof(settings.plus({name: str(value)}), resources)
        if proof is not None and proof.share <= PLANNED_BELOW and value > least:
            return guc.display(str(value))
    return guc.display(str(least))


def _fitting_connections(settings: EffectiveSettings, resources: Resources) -> tuple[int, int | None]:
    """Return the number of connections, and the largest number that would fit; None if none does."""
    reserved = reserved_connections(settings)
    found = int(settings.number("max_connections")) - reserved

    def fits(connections: int) -> bool:
        proof = memory_proof(settings.plus({"max_connections": str(connections + reserved)}), resources)
        return proof is not None and proof.share <= PLANNED_BELOW

    counts = range(found, 0, -1)
    first = bisect_left(counts, True, key=fits)  # noqa: FBT003 — what is looked for
    return found, None if first == len(counts) else counts[first]


def reserved_connections(settings: EffectiveSettings) -> int:
    """Return how many of max_connections ordinary roles cannot have."""
    names = ("superuser_reserved_connections", "reserved_connections")  # the second since 16
    return int(sum(settings.number(name) for name in names if settings.has(name)))
