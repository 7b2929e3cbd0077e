"""The tables that clients work on: the same for all, or each client's own.

What clients wait for each other by are shared things: pages, rows and locks, and the cache lines they are
counted in. With tables of its own in a schema of its own, a client shares none of them, and what is left is
the machine's and the server's own limit. The clients' tables together have as many rows as the shared ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil

from pgdyno.base.errors import UsageError
from pgdyno.measure.bundled_study import Option, separated
from pgdyno.model.experiments.workload import SCHEMAS, DriverScript, Workload, name_on_own_tables

SHARED, OWN = "shared", "own"
_KINDS = (SHARED, OWN)
_MB = 1 << 20
_USUAL_BUFFERS, _USUAL_BUFFERS_MB = "1GB", 1024  # room for the data of pgbench's workloads
_BESIDE_DATA = 1.1  # catalogues, visibility and free space maps


def _kinds(texts: tuple[str, ...]) -> tuple[str, ...]:
    for one in (values := separated(texts)):
        if one not in _KINDS:
            raise UsageError(f'no tables "{one}"', hint=f"choose {' or '.join(_KINDS)}, or both")
    return values


TABLES = Option(
    "tables",
    "whose tables clients work on: shared ones, or each client's own, so that clients share no pages, rows "
    "or locks; repeatable, or both separated by a comma, for curves side by side [default: shared].",
    _kinds,
    metavar="|".join(_KINDS),
    is_repeatable=True,
)
CAVEAT = (
    "clients with tables of their own read the rows of as many tables as there are clients: with few clients "
    "caches hold more of them, so that rates of own tables are compared with each other, not with shared ones"
)


def on_tables(load: Workload, kinds: Sequence[str], most_clients: int) -> tuple[Workload, ...]:
    """Return a load on every requested kind of tables; own ones are in its name.

    Raises: UsageError for a workload whose tables cannot be a client's own.
    """
    found = dict.fromkeys(kinds or (SHARED,))
    return tuple(_on_own(load, most_clients) if kind == OWN else load for kind in found)


def shared_buffers(loads: Iterable[Workload]) -> str:
    """Return room for all tables: of many clients they have more rows than the usual ones."""
    own_bytes = max((load.data_set.size_bytes for load in loads if load.data_set.schemas), default=0)
    needed_mb = ceil(_BESIDE_DATA * own_bytes / _MB)
    return f"{needed_mb}MB" if needed_mb > _USUAL_BUFFERS_MB else _USUAL_BUFFERS


def _on_own(load: Workload, most_clients: int) -> Workload:
    if load.data_set.name != "pgbench":
        raise UsageError(
            f"{load.name} cannot be run on tables of each client's own",
            hint="leave out --tables own, or choose one of pgbench's workloads",
        )
    each = ceil(load.data_set.scale / most_clients)
    return replace(
        load,
        name=f"{load.name}-own",
        load=name_on_own_tables(load.load or load.name, most_clients),
        issued_as=load.issued_as or load.name,
        kind=DriverScript(),  # which pgbench itself cannot issue
        data_set=replace(load.data_set, scale=each * most_clients, options={SCHEMAS: str(most_clients)}),
        invariant=None if load.invariant is None else _in_all_schemas(load.invariant, most_clients),
    )


def _in_all_schemas(condition: str, count: int) -> str:
    """Return the condition on the tables of every client."""
    each = (condition.replace("pgbench_", f"client_{number}.pgbench_") for number in range(1, count + 1))
    return f"SELECT {' AND '.join(f'({one})' for one in each)}"
