"""Open arenas: on scratch servers, or in three ways on a running server.

If queries only read an attached server's own data, nothing is loaded or restarted: rounds differ only in
their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from pgdyno.apply.host_state import this_host
from pgdyno.apply.session.session import LOADING, take
from pgdyno.base.errors import GeneratorMissingError
from pgdyno.base.ports import Progress
from pgdyno.host.cpu_idling import Awake
from pgdyno.host.files.tree import Tree
from pgdyno.host.probing.spinners import Spinners, remove_left_groups
from pgdyno.load._contract import Generator
from pgdyno.load.discovery import find_driver, find_generator
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.attached_arena import AsFound, AttachedArena, Switching
from pgdyno.measure.arenas.attached_server import AttachedBase, find_attached_server, find_remote_server
from pgdyno.measure.arenas.datasets import DataSets
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.arenas.loop_library import LoopLibraries
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.awake import AwakeKeeper, Keeping
from pgdyno.measure.design.isolation import CpuSplit, split_cpus
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.libpq_environment import libpq_variables_unset
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.local_machine import memory_group_place, online_cpus, workspace
from pgdyno.postgres.process.registry import find_installation, no_installation, require_native
from pgdyno.postgres.process.workload_databases import WorkloadDatabases
from pgdyno.postgres.process.workspace import Workspace

_VERSION_LIMIT_S = 30.0


@dataclass(frozen=True)
class OwnDataArena(AttachedBase):
    """One running server, and the database to query."""

    dsn: str
    data_directory: str
    database: str
    loads: Loads

    def load(self, _variant: Variant, _data_set: DataSet) -> None:
        """Do nothing: the data exist."""

    def has_seats(self, _variants: Sequence[Variant], _seats: Sequence[int], _data_set: DataSet) -> bool:
        """Return true: the only seat is the database itself."""
        return True

    def restore(
        self,
        _variants: Sequence[Variant],
        _seats: Sequence[int],
        _data_set: DataSet,
        _writing_s: float = 0.0,
    ) -> None:
        """Do nothing: queries only read, or are rolled back."""

    @contextmanager
    def arms(
        self,
        variants: Sequence[Variant],
        seats: Sequence[int],  # noqa: ARG002 — there is only one
        data_set: DataSet,  # noqa: ARG002 — it exists
        server_memory_bytes: int | None = None,  # noqa: ARG002 — rejected by memory_note
    ) -> Iterator[list[Arm]]:
        """Provide the running server, unchanged."""
        (variant,) = variants
        server, environment = find_attached_server(self.dsn, self.data_directory)
        arm = Arm(variant, server, self.database, environment)
        try:
            yield [arm]
        finally:
            arm.close()


@contextmanager
def open_scratch_arena(
    installation: Installation | None,
    variants: Sequence[Variant],
    progress: Progress,
    *,
    is_isolated: bool,
    is_timed: bool = True,
) -> Iterator[ScratchArena]:
    """Provide an arena for scratch servers of these variants; its directories are removed at the end.

    ``installation`` runs the variants that name no server, and its load programs serve all variants; None:
    the first variant's. ``is_timed``: the servers' speed matters.
    Raises: UsageError for an unknown server, or if neither a variant nor ``installation`` names one;
    RefusedError for a server that would run in an emulator, if ``is_timed``.
    """
    place = workspace()
    servers = {v.server: find_installation(v.server, place) for v in variants if v.server is not None}
    first = installation or next((servers[v.server] for v in variants if v.server is not None), None)
    if first is None or (installation is None and any(v.server is None for v in variants)):
        no_installation()
    if is_timed:
        require_native(first, *servers.values())
    remove_left_groups(Tree())
    unset = libpq_variables_unset()  # for connections from here, and for generators, which inherit it
    with unset, place.measuring(), place.scratch() as scratch, place.sockets(scratch) as sockets:
        loads = _loads(place, first, scratch, split_cpus(online_cpus(), is_wanted=is_isolated))
        data_sets = DataSets(place, scratch, loads.fill, progress)
        loops = LoopLibraries(place, scratch)
        yield ScratchArena(
            *(place, first, servers, data_sets, loops, sockets, loads, memory_group_place, this_host()),
            changes_schema=any(variant.statements for variant in variants),
        )


def _unlimited(loads: Loads) -> Loads:
    return loads


@contextmanager
def open_attached_arena(
    dsn: str,
    data_directory: str,
    installation: Installation,
    switch: Switching,
    progress: Progress,
    limited: Callable[[Loads], Loads] = _unlimited,
) -> Iterator[AttachedArena]:
    """Provide an arena on a running server, which is restored to its original state.

    ``limited`` returns the loads with the user's limits.
    """
    require_native(installation)
    place = workspace()
    databases = _databases(place, dsn)
    with server_errors_converted(), place.measuring(), place.scratch() as scratch, databases.held():
        # Neither a user's server nor its load is pinned to CPUs.
        loads = _loads(place, installation, scratch, split_cpus(online_cpus(), is_wanted=False))
        arena = AttachedArena(
            find=partial(find_attached_server, dsn, data_directory),
            switch=switch,
            databases=databases,
            loads=limited(loads),
            progress=progress,
        )
        try:
            yield arena
        finally:
            arena.leave()


@contextmanager
def open_remote_arena(dsn: str, progress: Progress) -> Iterator[AttachedArena]:
    """Provide an arena on an unchanged running server, on any host; pgdyno-driver loads it from here."""
    place = workspace()
    databases = _databases(place, dsn)
    with server_errors_converted(), place.measuring(), place.scratch() as scratch, databases.held():
        split = split_cpus(online_cpus(), is_wanted=False)
        loads = Loads(place, _only_the_driver, partial(find_driver, scratch), scratch, split)
        arena = AttachedArena(partial(find_remote_server, dsn), AsFound(), databases, loads, progress)
        try:
            yield arena
        finally:
            arena.leave()


@contextmanager
def open_own_data_arena(dsn: str, data_directory: str, database: str) -> Iterator[OwnDataArena]:
    """Provide an arena on an unchanged running server, queried only by pgdyno-driver."""
    place = workspace()
    with place.measuring(), place.scratch() as scratch:
        split = split_cpus(online_cpus(), is_wanted=False)
        loads = Loads(place, _only_the_driver, partial(find_driver, scratch), scratch, split)
        yield OwnDataArena(dsn, data_directory, database, loads)


def _databases(place: Workspace, dsn: str) -> WorkloadDatabases:
    return WorkloadDatabases(dsn, place.databases(), partial(take, lock=LOADING))


def _only_the_driver(name: str) -> NoReturn:
    raise GeneratorMissingError(f"{name} cannot query an attached server")


def _loads(place: Workspace, installation: Installation, scratch: Path, split: CpuSplit) -> Loads:
    def find(name: str) -> Generator:
        return find_generator(
            name,
            bin_directory=installation.bin_directory,
            scratch_directory=scratch,
            run=partial(place.account.run, limit_s=_VERSION_LIMIT_S),
        )

    return Loads(place, find, partial(find_driver, scratch), scratch, split)


def kept_awake(
    arena: ScratchArena, keeping: Callable[[AwakeKeeper], Keeping], progress: Progress
) -> tuple[ScratchArena, Awake]:
    """Return the arena with idle CPUs kept awake during its trials, and the record of the method.

    ``keeping`` returns the method: found by trial, or that of the resumed experiment. Raises: as ``keeping``.
    """
    progress.step("measuring the wake-up latency of CPUs")
    kept = keeping(AwakeKeeper(arena.host_state, Spinners(arena.host_state.tree, online_cpus())))
    host_state = replace(arena.host_state, always=kept.files)
    return replace(arena, host_state=host_state, spin=kept.spin), kept.record
