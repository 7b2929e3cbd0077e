"""The tables that clients work on: the same for all, or separate ones for each client.

Clients wait for each other on shared pages, rows and locks, and on the cache lines of their counters. A
client with its own tables in its own schema shares none of these, which leaves the limits of the machine and
the server. All clients' tables together have as many rows as the shared ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import Option, separated
from pgdyno.model.experiments.workload import SCHEMAS, DriverScript, Workload, name_on_own_tables

SHARED, OWN = "shared", "own"
_KINDS = (SHARED, OWN)
_MB = 1 << 20
_SPARE_CONNECTIONS = 20
_USUAL_BUFFERS, _USUAL_BUFFERS_MB = "1GB", 1024  # room for the data of pgbench's workloads
_WITH_OVERHEAD = 1.1  # times the data: catalogs, visibility and free space maps


def _kinds(texts: tuple[str, ...]) -> tuple[str, ...]:
    for one in (values := separated(texts)):
        if one not in _KINDS:
            raise UsageError(f'no tables "{one}"', hint=f"choose {' or '.join(_KINDS)}, or both")
    return values


TABLES = Option(
    "tables",
    "tables that clients work on: shared, or own for separate tables per client, so that clients share no "
    "pages, rows or locks; repeatable, or both separated by a comma, for two curves [default: shared].",
    _kinds,
    metavar="|".join(_KINDS),
    is_repeatable=True,
)
CAVEAT = (
    "each client with its own tables reads only its part of all rows: few clients read few rows, and caches "
    "hold more of them; compare rates on own tables with each other, not with rates on shared tables"
)


def on_tables(load: Workload, kinds: Sequence[str], most_clients: int) -> tuple[Workload, ...]:
    """Return a load on every requested kind of tables; names of loads on own tables end in ``-own``.

    Raises: UsageError for a workload that cannot have separate tables per client.
    """
    found = dict.fromkeys(kinds or (SHARED,))
    return tuple(_on_own(load, most_clients) if kind == OWN else load for kind in found)


def room_for(most_clients: int, loads: Iterable[Workload]) -> Mapping[str, str]:
    """Return settings with room for all connections and data.

    Separate tables of many clients have more rows than usual.
    """
    own_bytes = max((load.data_set.size_bytes for load in loads if load.data_set.schemas), default=0)
    needed_mb = ceil(_WITH_OVERHEAD * own_bytes / _MB)
    return {
        "max_connections": str(max(100, most_clients + _SPARE_CONNECTIONS)),
        "shared_buffers": f"{needed_mb}MB" if needed_mb > _USUAL_BUFFERS_MB else _USUAL_BUFFERS,
    }


def _on_own(load: Workload, most_clients: int) -> Workload:
    if load.data_set.name != "pgbench":
        raise UsageError(
            f"{load.name} cannot run on separate tables per client",
            hint="leave out --tables own, or choose one of pgbench's workloads",
        )
    each = ceil(load.data_set.scale / most_clients)
    return replace(
        load,
        name=f"{load.name}-own",
        load=name_on_own_tables(load.load or load.name, most_clients),
        issued_as=load.issued_as or load.name,
        kind=DriverScript(),  # pgbench itself cannot issue it
        data_set=replace(load.data_set, scale=each * most_clients, options={SCHEMAS: str(most_clients)}),
        invariant=None if load.invariant is None else _in_all_schemas(load.invariant, most_clients),
    )


def _in_all_schemas(condition: str, count: int) -> str:
    """Return a condition that holds if ``condition`` does in every client's schema."""
    each = (condition.replace("pgbench_", f"client_{number}.pgbench_") for number in range(1, count + 1))
    return f"SELECT {' AND '.join(f'({one})' for one in each)}"
