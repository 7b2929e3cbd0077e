"""The memory proof: a server's worst-case memory, item by item, compared with the smallest limit.

Worst case: all allowed connections are open, each runs one sort and one hash table at their full
allowance, all parallel and autovacuum workers run, one session builds an index, and every process has
touched all of shared_buffers. Roles and databases with larger allowances use all the sessions they may
have. The proof is human-readable: each item carries its formula with the figures.

Not included, because rare in transaction processing or bounded elsewhere: temp_buffers, logical decoding,
extensions' own memory, and statements with many concurrent sorts and hash tables.
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
"""Share of the limit that levers plan up to; the rest covers errors of the estimates below."""

MIB = 1 << 20
PRIVATE_BYTES = 6 * MIB
"""A backend's private memory without work_mem. Measured on PostgreSQL 18, private dirty pages: 1.4 MB after
connecting, 6.1 MB after reading most of the system catalogs."""

SHARED_OVERHEAD_SHARE, WAL_SEGMENT_BYTES = 0.03, 16 * MIB
"""Growth of other shared memory with shared_buffers: descriptors and the lookup table, as a share, and
wal_buffers, up to one WAL segment. Measured with ``postgres -C shared_memory_size`` on 15 and 18 from
128 MB to 16 GB."""

SHARED_BYTES_PER_CONNECTION = MIB // 10
"""Measured the same way: 16 MB for 200 additional connections on 18."""

SHARED_BUFFERS_AT_INITDB_BYTES, CONNECTIONS_AT_INITDB, SHARED_OVERHEAD_BYTES = 128 * MIB, 100, 24 * MIB
"""Base of the estimate where the server does not report it (before 15): initdb's settings; 22 MB on 18."""

MAINTENANCE_SESSIONS = 1
"""Concurrent sessions using maintenance_work_mem, autovacuum excluded: one user builds one index."""

_AMOUNTS = (
    "shared_buffers",
    "work_mem",
    "hash_mem_multiplier",
    "maintenance_work_mem",
    "autovacuum_work_mem",
)
"""Settings that may be set too high; max_connections is not among them, as the user states that number."""

PAGE_TABLE_ENTRY_BYTES = 8
DEFAULT_PAGE_BYTES = 4096


def memory_proof(settings: EffectiveSettings, resources: Resources) -> MemoryProof | None:
    """Return the worst case of a server with these settings; None if the memory limit is unknown."""
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

    Raises: MemoryProofError, with the sum as detail and the values that would fit as hint.
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
    """Return one item as ``SIZE  NAME: FORMULA``."""
    return f"{numbers.size(item.size_bytes):>9}  {item.name}: {item.formula}"


def shared_memory_bytes(settings: EffectiveSettings) -> int:
    """Estimate the size of the main shared memory segment, from its present size if known.

    Source of the present size: shared_memory_size since 15; before, the sum of pg_shmem_allocations, which
    only superusers can read.
    """
    return settings.size_bytes("shared_buffers") + _other_shared_memory(settings).size_bytes


def _other_shared_memory(settings: EffectiveSettings) -> MemoryItem:
    found = EffectiveSettings(settings.server)
    found_bytes = found.size_bytes("shared_buffers")
    reported_bytes = settings.server.shared_memory_bytes.or_none()
    if found.has("shared_memory_size"):
        now_bytes = found.size_bytes("shared_memory_size") - found_bytes
    elif reported_bytes is not None:
        now_bytes = reported_bytes - found_bytes
    else:
        now_bytes = SHARED_OVERHEAD_BYTES + _overhead_of(found_bytes - SHARED_BUFFERS_AT_INITDB_BYTES)
        now_bytes += (
            int(found.number("max_connections") - CONNECTIONS_AT_INITDB) * SHARED_BYTES_PER_CONNECTION
        )
    new_connections = int(settings.number("max_connections") - found.number("max_connections"))
    size_bytes = now_bytes + _overhead_of(settings.size_bytes("shared_buffers") - found_bytes)
    size_bytes += new_connections * SHARED_BYTES_PER_CONNECTION
    formula = (
        f"{numbers.size(now_bytes)} now, plus {numbers.share(SHARED_OVERHEAD_SHARE)} of the increase of "
        "shared_buffers"
    )
    return MemoryItem("other shared memory", formula, max(size_bytes, 0))


def _overhead_of(grown_bytes: int) -> int:
    """Return the growth of other shared memory when shared_buffers grow by ``grown_bytes``."""
    return int(SHARED_OVERHEAD_SHARE * grown_bytes) + (WAL_SEGMENT_BYTES if grown_bytes > 0 else 0)


def _sessions(settings: EffectiveSettings) -> tuple[MemoryItem, ...]:
    """Return the memory of connections and parallel workers; larger allowances are separate items."""
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
        formula += "; per-role and per-database settings are not known"
    return MemoryItem(name, formula, connections * _work_bytes(settings))


def _work_of_workers(name: str, settings: EffectiveSettings, workers: int) -> MemoryItem:
    formula = f"{workers} × ({numbers.size(PRIVATE_BYTES)} + {_work_formula(settings)})"
    return MemoryItem(name, formula, workers * (PRIVATE_BYTES + _work_bytes(settings)))


def _work_bytes(settings: EffectiveSettings) -> int:
    """Return the memory of one sort and one hash table; hash_mem_multiplier scales the latter."""
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
    """Return autovacuum's memory. Its workers use the database's maintenance_work_mem if set."""
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
    """Whether shared memory will use explicit huge pages: allowed, and the pool is known to suffice."""
    pool = resources.huge_pages.or_none()
    if pool is None or settings.text("huge_pages") == "off":
        return False
    return pool.usable * pool.page_bytes >= shared_memory_bytes(settings)


def _way_out(proof: MemoryProof, settings: EffectiveSettings, resources: Resources) -> tuple[str, int | None]:
    """Return a hint on values that fit, and the number of connections that fits if only they are too many."""
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
    """Name the largest per-role or per-database setting, if the plan would fit without all of them."""
    override = largest_override(settings)
    server = replace(settings.server, overrides=Fact((), settings.server.overrides.source))
    without = memory_proof(EffectiveSettings(server, settings.planned), resources)
    if override is None or without is None or without.share > REFUSED_ABOVE:
        return None
    owner = f'ROLE "{override.role}"' if override.role else f'DATABASE "{override.database}"'
    limit = f", or limit its sessions: ALTER {owner} CONNECTION LIMIT …"
    is_for_all = override.role is None and override.database is None
    setting = f"{override.name} = {override.value} of {scope_of(override)}"
    return f"{setting} is too high for that many sessions: lower it{'' if is_for_all else limit}"


def _hint_on_value(settings: EffectiveSettings, resources: Resources) -> str | None:
    """Name the server-wide value that is too high, if the plan would fit with its default."""
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
    return f"{name} = {settings.display(name)} is too high: {name} = {fitting} would fit"


def _lower_default(settings: EffectiveSettings, name: str) -> str | None:
    """Return a setting's default if the present value is higher and no lever plans it."""
    guc = settings.guc(name)
    default = INITDB_CHOICES.get(name, guc.boot_val)
    if name in settings.planned or default is None or Decimal(guc.setting) <= Decimal(default):
        return None
    return default


def _largest_fitting(name: str, settings: EffectiveSettings, resources: Resources) -> str:
    """Return the largest value that fits, found by halving the present one; at least the default."""
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
    first = bisect_left(counts, True, key=fits)  # noqa: FBT003 — the value to find
    return found, None if first == len(counts) else counts[first]


def reserved_connections(settings: EffectiveSettings) -> int:
    """Return the number of max_connections that are not available to ordinary roles."""
    names = ("superuser_reserved_connections", "reserved_connections")  # the second since 16
    return int(sum(settings.number(name) for name in names if settings.has(name)))
