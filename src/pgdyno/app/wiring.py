"""Builds adapters. The only place where ports and adapters meet."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pgdyno.app.arena import online_cpus
from pgdyno.app.attached_arena import AsFound, AttachedArena
from pgdyno.app.attached_server import find_attached_server, reach_server
from pgdyno.app.attached_switch import Switch
from pgdyno.app.datasets import DataSets
from pgdyno.app.host_state import HostState
from pgdyno.app.interchange import InterchangeCheck
from pgdyno.app.load import Loads
from pgdyno.app.loop_library import LoopLibraries
from pgdyno.app.probe import ProgramsProbe
from pgdyno.app.scratch_arena import ScratchArena
from pgdyno.app.start_check import StartCheck
from pgdyno.app.visited_arena import VisitedArena
from pgdyno.experiments.isolation import CpuSplit, split_cpus
from pgdyno.generators._contract import Generator
from pgdyno.generators.discovery import find_driver, find_generator
from pgdyno.host.cgroups import read_hierarchy, read_membership
from pgdyno.host.limits import available_memory
from pgdyno.host.tree import Tree
from pgdyno.journal.access import ServerAccess
from pgdyno.journal.host_run import host_writers
from pgdyno.journal.lock import exclusive_lock
from pgdyno.journal.query import Connect
from pgdyno.journal.restart import CommandRestarter, command_restarter
from pgdyno.model.errors import GeneratorMissingError, PrivilegeError, RefusedError, UsageError
from pgdyno.model.facts import Fact, Unknown
from pgdyno.model.page_compression import PageCompression
from pgdyno.model.ports import Progress
from pgdyno.model.server import Server
from pgdyno.model.variant import Variant
from pgdyno.server.account import current_account
from pgdyno.server.connection import Connection, addresses, connect, without_password
from pgdyno.server.connection_by_directory import connect_by_directory
from pgdyno.server.installation import Installation, embedded_installation, installation_at
from pgdyno.server.libpq_environment import libpq_variables_unset
from pgdyno.server.memory_limit import GroupPlace, find_place
from pgdyno.server.registry import find_installation
from pgdyno.server.workload_databases import WorkloadDatabases
from pgdyno.server.workspace import Workspace, default_root
from pgdyno.store.experiments import ExperimentStore

if TYPE_CHECKING:
    from pgdyno.app.attached import Attached  # which is built here, from these adapters


_MACHINE_LOCK = Path("/run/pgdyno.lock")  # where root alone can write
_SOME_SYSCTL = "/proc/sys/vm/swappiness"  # which every kernel has


def open_store() -> ExperimentStore:
    """Open the store of this user's experiments."""
    return ExperimentStore(workspace().experiments() / "experiments.sqlite")


def available_memory_bytes() -> int:
    """Return the memory that new servers may use: what the host has left, within every cgroup limit."""
    return available_memory(Tree(Path("/")), "self").or_else(0)


def server_access(
    dsn: str | None, restart_command: str | None = None, data_directory: Path | None = None
) -> ServerAccess:
    """Return how a server is reached and where receipts for its changes go.

    Without a DSN, a data directory's own server is connected to, if it runs.
    Raises: UsageError if the restart command cannot be split into words, or the DSN not be understood.
    """

    def open_connection(database: str | None = None) -> Connection:
        if dsn is None and data_directory is not None:
            return connect_by_directory(data_directory, is_read_only=False, database=database)
        return connect(dsn, is_read_only=False, database=database)

    words = ["pgdyno", "revert"]
    words += [] if dsn is None else ["--dsn", without_password(dsn)]
    words += [] if data_directory is None else ["--pgdata", str(data_directory)]
    return ServerAccess(
        open_connection,
        workspace().root / "journal",
        programs_check=InterchangeCheck(workspace(), open_connection),
        data_directory=data_directory,
        restarter=None if restart_command is None else _restarter(restart_command, open_connection),
        addresses=() if dsn is None and data_directory is not None else addresses(dsn),
        revert_command=shlex.join(words),
        host_writers=host_writers(),
    )


def _restarter(restart_command: str, open_connection: Connect) -> CommandRestarter:
    try:
        words = shlex.split(restart_command)
    except ValueError as error:
        raise UsageError(
            f'could not read --restart-command "{restart_command}"', detail=str(error)
        ) from error
    return command_restarter(words, open_connection)


def start_check(bin_directory: Path | None) -> StartCheck | None:
    """Return what tries a start on a scratch directory; None if the programs are out of reach."""
    return None if bin_directory is None else StartCheck(installation_in(bin_directory), workspace())


def host_state() -> HostState:
    """Return the machine that is measured on, and the journal of its changes."""
    return HostState(workspace().root / "journal", host_writers())


def machine_claimed(*, is_wanted: bool) -> AbstractContextManager[None]:
    """Return what keeps other pgdynos of root from changing how CPUs idle meanwhile, whatever their home is.

    Entering it raises LockHeldError if another one does. Who may not change the machine claims nothing.
    """
    may_claim = may_change_host() and os.access(_MACHINE_LOCK.parent, os.W_OK)
    return exclusive_lock(_MACHINE_LOCK) if is_wanted and may_claim else nullcontext()


def may_change_host() -> bool:
    """Whether this user may change the machine: in a container even root finds its files read-only."""
    return os.geteuid() == 0 and os.access(_SOME_SYSCTL, os.W_OK)


def probe(
    bin_directory: Path | None, server: Server, pages: Fact[PageCompression] | None = None
) -> ProgramsProbe | None:
    """Return what asks a server's programs; None if they are out of reach."""
    if bin_directory is None:
        return None
    return ProgramsProbe(installation_in(bin_directory), workspace(), server, pages)


def workspace() -> Workspace:
    """Return this user's workspace."""
    return Workspace(default_root(), current_account())


def embedded() -> Installation:
    """Return the embedded PostgreSQL. Raises: ServerError if the extra ``pgdyno[pg]`` is missing."""
    return embedded_installation(workspace())


def installation_in(bin_directory: Path) -> Installation:
    """Return the PostgreSQL whose programs are in a directory. Raises: ServerError if there is none."""
    return installation_at(bin_directory, current_account())


def choose_installation(*, is_embedded: bool, bin_directory: Path | None) -> Installation | None:
    """Return the PostgreSQL of ``--embedded`` or ``--pg-bin``; None if neither is given.

    Raises: UsageError if both are, ServerError if there is none at that place.
    """
    if is_embedded and bin_directory is not None:
        raise UsageError("--embedded and --pg-bin exclude each other")
    if bin_directory is not None:
        return installation_in(bin_directory.resolve())
    return embedded() if is_embedded else None


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

    ``installation`` runs the variants that name no server, and its load programs drive all of them; None
    stands for the first variant's own. ``is_timed``: how fast they are matters.
    Raises: UsageError for a server that is not known, or if a variant names none and there is no other;
    RefusedError for one whose speed says nothing.
    """
    place = workspace()
    servers = {v.server: find_installation(v.server, place) for v in variants if v.server is not None}
    first = installation or next((servers[v.server] for v in variants if v.server is not None), None)
    if first is None or (installation is None and any(v.server is None for v in variants)):
        none_named()
    if is_timed:
        require_native(first, *servers.values())
    unset = libpq_variables_unset()  # for whatever connects here, and for generators, which inherit them
    with unset, place.measuring(), place.scratch() as scratch, place.sockets(scratch) as sockets:
        loads = _loads(place, first, scratch, split_cpus(online_cpus(), is_wanted=is_isolated))
        data_sets = DataSets(place, scratch, loads, progress)
        loops = LoopLibraries(place, scratch)
        yield ScratchArena(
            place, first, servers, data_sets, loops, sockets, loads, memory_group_place, host_state()
        )


@contextmanager
def open_attached_arena(attached: Attached, switch: Switch, progress: Progress) -> Iterator[AttachedArena]:
    """Provide an arena on a running server itself, which is left as it was found."""
    place, installation = workspace(), attached.installation
    require_native(installation)
    with place.measuring(), place.scratch() as scratch:
        # Someone's server is not pinned, and its load is not either.
        loads = _loads(place, installation, scratch, split_cpus(online_cpus(), is_wanted=False))
        arena = AttachedArena(
            find=partial(find_attached_server, attached.dsn, attached.data_directory),
            switch=switch,
            databases=WorkloadDatabases(attached.dsn),
            loads=loads,
            progress=progress,
        )
        arena.databases.drop_all()  # what a killed pgdyno may have left
        try:
            yield arena
        finally:
            arena.leave()


@contextmanager
def open_reached_arena(dsn: str, progress: Progress) -> Iterator[AttachedArena]:
    """Provide an arena on a running server as it is, wherever it runs; our own driver loads it from here."""
    place = workspace()
    with place.measuring(), place.scratch() as scratch:
        split = split_cpus(online_cpus(), is_wanted=False)
        loads = Loads(place, _only_the_driver, partial(find_driver, scratch), scratch, split)
        databases = WorkloadDatabases(dsn)
        arena = AttachedArena(partial(reach_server, dsn), AsFound(), databases, loads, progress)
        databases.drop_all()  # what a killed pgdyno may have left
        try:
            yield arena
        finally:
            arena.leave()


@contextmanager
def open_visited_arena(dsn: str, data_directory: str, database: str) -> Iterator[VisitedArena]:
    """Provide an arena on a running server as it is, which our own driver alone queries."""
    place = workspace()
    with place.measuring(), place.scratch() as scratch:
        split = split_cpus(online_cpus(), is_wanted=False)
        loads = Loads(place, _only_the_driver, partial(find_driver, scratch), scratch, split)
        yield VisitedArena(dsn, data_directory, database, loads)


def installation_of(variant: Variant, other: Installation | None) -> Installation | None:
    """Return what runs a variant: the server it names, or ``other``. Raises: UsageError if not known."""
    return other if variant.server is None else find_installation(variant.server, workspace())


def require_native(*installations: Installation) -> None:
    """Raise RefusedError for an installation whose programs an emulator runs."""
    for one in installations:
        if one.foreign_machine:
            raise RefusedError(
                f"{one.name} is not measured here: it runs emulated",
                detail=f"its programs are for {one.foreign_machine}: their speed here is the emulator's",
                hint="measure it on such a machine, where pgdyno build deb takes it; pgdyno bench --emulated "
                "shows what it does",
            )


def none_named() -> NoReturn:
    """Raise UsageError: nobody said which PostgreSQL to measure."""
    raise UsageError(
        "no PostgreSQL was named",
        hint="add --embedded, or --pg-bin DIR with the directory of its programs (pg_config --bindir), "
        "or name a server in every variant (see pgdyno server list): debian-17@default",
    )


def memory_group_place() -> GroupPlace:
    """Return where control groups with a limit on memory can be made. Raises: PrivilegeError."""
    tree = Tree(Path("/"))
    hierarchy = read_hierarchy(tree, read_membership(tree, "self"), "memory").value
    if isinstance(hierarchy, Unknown):
        raise PrivilegeError("the memory of a server cannot be limited here", detail=hierarchy.reason)
    return find_place(hierarchy.version, hierarchy.directories)


def _only_the_driver(name: str) -> NoReturn:
    raise GeneratorMissingError(f"{name} does not query someone's running server")


def _loads(place: Workspace, installation: Installation, scratch: Path, split: CpuSplit) -> Loads:
    def find(name: str) -> Generator:
        return find_generator(name, bin_directory=installation.bin_directory, scratch_directory=scratch)

    return Loads(place, find, partial(find_driver, scratch), scratch, split)
