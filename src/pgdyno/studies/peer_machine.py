"""The machine that all configurations of ``run peers`` are made for, and the load on it.

Servers that run side by side have a share of the memory each. In passes over steps, servers run one after
another, and each has all of the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.base import numbers
from pgdyno.base.errors import MemoryProofError, UsageError
from pgdyno.measure.bundled_study import BundledStudy, Sizing
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import Step, TpchStep, Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.sharing import MEMORY_SHARE
from pgdyno.plan.peers import load
from pgdyno.plan.peers._contract import PeerFacts, Purpose
from pgdyno.postgres.process.local_machine import available_memory_bytes
from pgdyno.postgres.server import Server
from pgdyno.studies.bundled.peers import LEAST_BYTES, MEMORY, VARIANT

# The plan and the whole stack, each with and without the settings that suit only some applications; the
# plan's settings without its host layer; a peer with it.
_MOST_OF_OURS = 6
_LARGEST_SHARE = 1 / 3  # of memory for shared_buffers in a configuration: Cloud SQL's; most have 1/4
_STEP_BYTES = 64 << 20
_SESSIONS_OF_A_STEP = 3  # per client: queries, inserts and deletes
_WAL_SIZE = "max_wal_size"


@dataclass(frozen=True)
class LoadOnPeers:
    """The load that peers are measured under.

    ``purpose`` is passed to the tools. ``clients`` is the largest number of sessions. ``made_bytes`` is the
    size of the data that the load itself creates; None: the data are loaded before.
    """

    in_passes: bool
    purpose: Purpose
    clients: int
    data_bytes: int
    made_bytes: int | None


def load_of(conditions: Conditions) -> LoadOnPeers:
    """Return the load of these conditions."""
    workloads = tuple(conditions.workloads.values())
    is_tpch = any(isinstance(one.kind, TpchStep) for one in workloads)
    made = [one.made_bytes for one in workloads if one.made_bytes is not None]
    return LoadOnPeers(
        in_passes=any(one.step for one in workloads),
        purpose=Purpose.WAREHOUSE if is_tpch else Purpose.TRANSACTIONS,
        clients=max(_sessions(one, conditions.design) for one in workloads),
        data_bytes=max(made or [one.data_set.size_bytes for one in workloads]),
        made_bytes=max(made, default=None),
    )


def memory_for_each(available_bytes: int, servers: int) -> int:
    """Return the memory of the machine that configurations are made for, such that all servers fit.

    If each server had the largest share as shared_buffers, they would just fill the memory for interleaved
    servers; most have less. The rest is for the data in the page cache, and for backends.
    """
    return _stepped(MEMORY_SHARE * available_bytes / servers / _LARGEST_SHARE)


def machine_memory(sizing: Sizing, demand: LoadOnPeers) -> tuple[int, int]:
    """Return the memory to make configurations for, and the available memory.

    Raises: UsageError if less is available than --memory; MemoryProofError if a server's share is too small.
    """
    available_bytes = available_memory_bytes()
    servers = 1 if demand.in_passes else len(load()) + _MOST_OF_OURS + len(sizing.of(VARIANT))
    share_bytes = _stepped(available_bytes) if demand.in_passes else memory_for_each(available_bytes, servers)
    memory_bytes = sizing.of(MEMORY) or share_bytes
    available = numbers.size(available_bytes)
    if memory_bytes > available_bytes:
        requested = numbers.size(memory_bytes)
        raise UsageError(f"--memory {requested} is more than the available {available}")
    if memory_bytes < LEAST_BYTES and demand.in_passes:
        raise MemoryProofError(f"only {available} of memory are available, and every rule needs 1 GB")
    if memory_bytes < LEAST_BYTES:
        raise MemoryProofError(
            f"{servers} servers side by side would have {numbers.size(memory_bytes)} of memory each",
            detail=f"{available} are available, and every rule needs 1 GB",
            hint="with --memory 1GB, servers that do not fit side by side take turns in whole trials",
        )
    return memory_bytes, available_bytes


def machine_notes(facts: PeerFacts, demand: LoadOnPeers, available_bytes: int | None) -> Iterator[str]:
    """Yield a note on the machine of all configurations; ``available_bytes`` None: memory was given."""
    share = ""
    if available_bytes is not None:
        part = "all of" if demand.in_passes else "each server's share of"
        share = f": {part} the {numbers.size(available_bytes)} available here"
    cpus = "1 CPU" if facts.cpus == 1 else f"{facts.cpus} CPUs"
    machine = f"{numbers.size(facts.memory_bytes)} of memory, {cpus} and {facts.storage} storage"
    connections = f", and for max_connections = {facts.connections} if its rule uses that"
    yield f"every configuration is made for a machine with {machine}{share}{connections}"


def notes_on_data(variants: Sequence[Variant], server: Server, data_bytes: int) -> Iterator[str]:
    """Yield a note on the variants with shared_buffers smaller than the data."""
    names = [one.name for one in variants if _buffers_bytes(server, one.gucs) < data_bytes]
    if names:
        yield (
            f"the data, {numbers.size(data_bytes)}, do not fit into shared_buffers of {', '.join(names)}; "
            "these servers read them from the page cache"
        )


def with_room_for_wal(
    workloads: Mapping[str, Workload],
    bundled: BundledStudy,
    sizing: Sizing,
    configurations: Iterable[Mapping[str, str]],
) -> Mapping[str, Workload]:
    """Return workloads with disk space for the largest max_wal_size of these configurations.

    They were made before the configurations, with space for PostgreSQL's default, which the baseline has.
    """
    sizes = tuple(one[_WAL_SIZE] for one in configurations if _WAL_SIZE in one)
    if bundled.workloads is None or not sizes:
        return workloads
    larger = bundled.workloads(replace(sizing, max_wal_sizes=sizes))
    return {name: _with_room(one, larger[name].disk_bytes) for name, one in workloads.items()}


def _with_room(workload: Workload, disk_bytes: int | None) -> Workload:
    if workload.disk_bytes is None or disk_bytes is None:
        return workload
    return replace(workload, disk_bytes=max(workload.disk_bytes, disk_bytes))


def _buffers_bytes(server: Server, settings: Mapping[str, str]) -> int:
    known = {name: value for name, value in settings.items() if name in server.settings}
    return EffectiveSettings(server, known).size_bytes("shared_buffers")


def _sessions(workload: Workload, design: Design) -> int:
    match workload.kind:
        case Step(clients=clients):
            return clients * _SESSIONS_OF_A_STEP
        case TpchStep(clients=streams):
            return streams + 1  # and one of refresh functions
    return workload.clients or design.clients


def _stepped(size_bytes: float) -> int:
    return int(size_bytes) // _STEP_BYTES * _STEP_BYTES
