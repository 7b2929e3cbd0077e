"""The usual arena: pgdyno's scratch servers, running at the same time on byte-identical data."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from pgdyno.apply.host_state import BeginTurn, HostState
from pgdyno.base import numbers
from pgdyno.base.errors import HugePagesError, PgdynoError, ServerCrashedError, ServerStartError
from pgdyno.base.facts import Unknown
from pgdyno.host.probing.spinners import Spin
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.datasets import DataSets, schema_key
from pgdyno.measure.arenas.load import Loads
from pgdyno.measure.arenas.loop_library import LoopLibraries
from pgdyno.model.experiments.experiment import DesignKind
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import EMPTY, DataSet, Workload
from pgdyno.model.plans.confounding import Build, build_differences, is_confounded, parse_build
from pgdyno.model.plans.plan import HUGE_PAGES, kind_of
from pgdyno.model.plans.recipe import patches_in
from pgdyno.model.variants.schema_sql import SchemaChange
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.network_access import NetworkAccess
from pgdyno.postgres.guc import normalise
from pgdyno.postgres.process.account import Account
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance
from pgdyno.postgres.process.memory_limit import (
    RECORD_SUFFIX,
    GroupPlace,
    MemoryGroup,
    drop_file_from_page_cache,
    drop_from_page_cache,
    group_name,
)
from pgdyno.postgres.process.wal_segments import preallocate_segments
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.postgres.sampling.statement_statistics import LEAST_MAJOR, LIBRARY

# Measured: sysbench read-write writes 30 MB/s of WAL with one CPU right after a checkpoint, its peak.
_WAL_BYTES_PER_CPU_SECOND = 48 << 20
_KEPT_BY_DEFAULT_BYTES = 80 << 20  # min_wal_size with segments of 16 MB
_MOST_WAL_BYTES = 2 << 30  # arbitrary: per copy and round, a few seconds of writing zeros
_NO_PAGES = "could not map anonymous shared memory"
_FIRST_PORT = 5433  # any: the socket directory is private; one port per seat


@dataclass(frozen=True)
class ScratchArena:
    """Installations, data sets, and the directories of scratch servers.

    A seat is a data directory with its port. Arms change seats from round to round, so that the placement of
    a copy on disk does not look like an effect. ``installation`` runs the variants that name no server,
    ``servers`` the others; each installation loads its own ``data_sets``. ``find_place`` returns the parent
    of control groups that limit a server's memory, or raises an error. ``is_prepared``: the kernel files that
    all variants need are set, and ``begin_turn`` sets those of one variant. ``spin`` keeps CPUs awake during
    an experiment. Servers run ``under`` a program, such as a simulator; then data are not prewarmed, which
    would take minutes. Load hosts connect through the ``entrance``. ``changes_schema``: a variant has SQL, so
    the data of all variants go through the same steps.
    """

    workspace: Workspace
    installation: Installation
    servers: Mapping[str, Installation]
    data_sets: DataSets
    loops: LoopLibraries
    sockets: Path
    loads: Loads
    find_place: Callable[[], GroupPlace]
    host_state: HostState
    accepts_builds: bool = False  # see build_note
    is_prepared: bool = False
    begin_turn: BeginTurn | None = None
    spin: Spin = nullcontext
    under: tuple[str, ...] = ()
    entrance: NetworkAccess | None = None
    changes_schema: bool = False

    @property
    def installation_name(self) -> str:
        """The installation of variants that name no server."""
        return self.installation.name

    def installation_of(self, variant: Variant) -> Installation:
        """Return the installation of a variant's server."""
        return self.installation if variant.server is None else self.servers[variant.server]

    def build_notes(self, variants: Sequence[Variant]) -> tuple[str, ...]:
        """Return notes on the variants' builds: patches, and differences other than the version."""
        first, *others = dict.fromkeys(self.installation_of(variant) for variant in variants)
        account, accepts = self.workspace.account, self.accepts_builds
        patched = tuple(filter(None, (patch_note(one, account) for one in (first, *others))))
        if all(variant.server is None for variant in variants):
            return patched
        named = "; ".join(f"{v.name} is {self.installation_of(v).title}" for v in variants)
        notes = (build_note(first, other, account, is_accepted=accepts) for other in others)
        return (*patched, named, *notes)

    def memory_note(self, limit_bytes: int) -> str:
        """Return a note on the limit of servers' memory. Raises: PrivilegeError if it cannot be limited."""
        return (
            f"the server's memory, page cache included, is limited to {numbers.size(limit_bytes)} "
            f"by cgroup v{self.find_place().version}"
        )

    def why_uncounted(self, variants: Sequence[Variant]) -> str:
        """Return why not all variants' servers can count statements; empty if they can."""
        if self.under:
            return f"servers run under {Path(self.under[0]).name}"
        for installation in map(self.installation_of, variants):
            if installation.major < LEAST_MAJOR:
                return f"{installation.title} does not count planning; PostgreSQL {LEAST_MAJOR} and later do"
            if not installation.has_library(LIBRARY, self.workspace.account):
                return f"{installation.title} has no {LIBRARY}"
        return ""

    def check(self, variants: Sequence[Variant]) -> None:
        """Validate all variants' settings with their servers, and their kernel files, without any data."""
        for variant in variants:
            installation = self.installation_of(variant)
            empty = self.data_sets.ensure(EMPTY, installation)
            installation.check_settings(self.workspace.account, empty, variant.gucs)
            self.host_state.check(variant.files)

    def load(self, variant: Variant, data_set: DataSet) -> None:
        """Load the data set for a variant's server, unless already loaded."""
        self._loaded(variant, data_set)

    def shared_memory_bytes(self, variant: Variant) -> int:
        """Return the shared memory of a variant's server, in bytes; 0 if it cannot be known beforehand."""
        installation = self.installation_of(variant)
        empty = self.data_sets.ensure(EMPTY, installation)
        return installation.shared_memory_bytes(self.workspace.account, empty, variant.gucs) or 0

    def _loaded(self, variant: Variant, data_set: DataSet) -> Path:
        """Return the stopped, loaded data directory that is copied for this variant.

        Raises: InstallationError if the data set's functions cannot be compiled for its server.
        """
        if data_set.has_loops:
            self.loops.ensure(self.installation_of(variant))
        if self.changes_schema:
            place, _ = self.data_sets.changed(data_set, self.installation_of(variant), variant)
            return place
        return self.data_sets.ensure(data_set, self.installation_of(variant))

    def schema_changes(
        self, variants: Sequence[Variant], workloads: Sequence[Workload]
    ) -> tuple[SchemaChange, ...]:
        """Return the costs of all variants' SQL on the data of each workload; empty if none has any."""
        return tuple(
            SchemaChange(
                one.name,
                workload.name,
                one.statements,
                **vars(self.data_sets.changed(workload.data_set, self.installation_of(one), one)[1]),
            )
            for workload, one in product(workloads, variants if self.changes_schema else ())
        )

    def require_room(self, variants: Sequence[Variant], workloads: Sequence[Workload]) -> None:
        """Raise StorageError if the disk is too small for the data of all variants, before any is made."""
        needed: dict[Path, int] = {}
        for workload, one in product(workloads, variants if self.changes_schema else ()):
            data_set = workload.data_set
            needed |= self.data_sets.missing_bytes(data_set, self.installation_of(one), one)
            # Copies stay on their seats while variants change places; an index may double the size.
            seats = (self._seat_directory(one, seat, data_set) for seat in range(len(variants)))
            needed |= dict.fromkeys(seats, 2 * data_set.size_bytes)
        if needed:
            purpose = f"the data of {len(variants)} variants, each with its own schema"
            self.workspace.require_free(sum(needed.values()), purpose, self.workspace.room_hint())

    def restore(
        self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet, writing_s: float = 0.0
    ) -> None:
        """Put a new copy of the data set on every variant's seat, with WAL segments for ``writing_s``."""
        places = [
            (variant, self._seat_directory(variant, seat, data_set))
            for variant, seat in zip(variants, seats, strict=True)
        ]
        self.data_sets.copy([(self._loaded(variant, data_set), directory) for variant, directory in places])
        wal_bytes = self._wal_bytes(writing_s, len(places))
        for variant, directory in places if wal_bytes else ():
            installation, zeros = self.installation_of(variant), self.loads.scratch
            preallocate_segments(
                installation, self.workspace.account, directory, zeros, wal_kept(variant, wal_bytes)
            )

    def _wal_bytes(self, writing_s: float, copies: int) -> int:
        """Return the bytes of WAL segments to prepare; fewer on a small disk, which the audit then shows."""
        needed = int(writing_s * len(self.loads.split.server) * _WAL_BYTES_PER_CPU_SECOND)
        room = shutil.disk_usage(self.workspace.root).free // 2 // copies
        return min(needed, _MOST_WAL_BYTES, room)

    def has_seats(self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> bool:
        """Whether every variant's seat holds a copy."""
        places = zip(variants, seats, strict=True)
        return all((self._seat_directory(v, seat, data_set) / "PG_VERSION").is_file() for v, seat in places)

    def discard(self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> None:
        """Remove the data directory of every seat."""
        for variant, seat in zip(variants, seats, strict=True):
            shutil.rmtree(self._seat_directory(variant, seat, data_set))

    @contextmanager
    def prepared_for(self, study: Study) -> Iterator[ScratchArena]:
        """Provide the arena with the machine prepared for all arms at once, if they take turns.

        With alternating trials, each trial prepares the machine, if any variant sets kernel files.
        """
        is_duet = study.design.kind is DesignKind.DUET
        is_held = is_duet or not any(variant.files for variant in study.variants)
        with ExitStack() as stack:
            spinners = stack.enter_context(self.spin()) or ()
            split = replace(self.loads.split, spinners=spinners)
            arena = replace(self, loads=replace(self.loads, split=split))
            if is_held:
                held = self.host_state.holding(*(variant.files for variant in study.variants))
                begin_turn = stack.enter_context(held)
                arena = replace(arena, is_prepared=True, begin_turn=begin_turn)
            yield arena

    @contextmanager
    def arms(
        self,
        variants: Sequence[Variant],
        seats: Sequence[int],
        data_set: DataSet,
        server_memory_bytes: int | None = None,
    ) -> Iterator[list[Arm]]:
        """Start every variant's server on its seat, in seat order; stop them all at the end.

        Each starts with its variant's kernel files set. A server with limited memory starts with none of its
        data in the page cache.
        """
        started: dict[int, Arm] = {}
        limited: list[Instance] = []
        with ExitStack() as stack:
            begin_turn = self.begin_turn
            if not self.is_prepared:
                begin_turn = stack.enter_context(self.host_state.holding(*(v.files for v in variants)))
            forget_programs([self.installation_of(variant) for variant in variants])
            try:
                for index in sorted(range(len(variants)), key=lambda arm: seats[arm]):
                    instance = self._instance(variants[index], seats[index], data_set)
                    if server_memory_bytes is not None:
                        drop_from_page_cache(instance.data_directory)
                        seat = instance.data_directory.name
                        instance.memory = self._memory_group(seat, server_memory_bytes)
                        limited.append(instance)
                    arm = Arm(variants[index], instance)
                    if begin_turn is not None:
                        arm.begin_turn = partial(begin_turn, index)
                        arm.begin_turn()
                    stack.callback(arm.close)
                    _start(instance, variants[index])
                    if data_set.has_loops:
                        self.loops.make_functions(instance)
                    if not self.under:
                        arm.prewarm()
                    started[index] = arm
                yield [started[index] for index in range(len(variants))]
            except PgdynoError as error:
                _explain_kill(limited, error)
                raise

    def _instance(self, variant: Variant, seat: int, data_set: DataSet) -> Instance:
        return Instance(
            self.installation_of(variant),
            self.workspace.account,
            self._seat_directory(variant, seat, data_set),
            self.sockets,
            self.entrance.free_port() if self.entrance else _FIRST_PORT + seat,
            variant.gucs,
            cpus=self.loads.split.server,
            environment=variant.environment,
            scheduling_policy=variant.scheduling_policy,
            has_network=data_set.dump is None,
            under=self.under,
            entrance=self.entrance,
        )

    def _memory_group(self, seat: str, limit_bytes: int) -> MemoryGroup:
        scratch = self.loads.scratch
        record = scratch / f"{seat}{RECORD_SUFFIX}"
        return MemoryGroup(self.find_place(), group_name(scratch, seat), limit_bytes, record)

    def _seat_directory(self, variant: Variant, seat: int, data_set: DataSet) -> Path:
        installation = self.installation_of(variant)
        key = f"-{schema_key(installation, variant.statements)}" if self.changes_schema else ""
        return self.loads.scratch / f"pg{installation.version}-{data_set.key}{key}-seat{seat}"


def forget_programs(installations: Sequence[Installation]) -> None:
    """Drop the servers' executables from the page cache, if several are compared.

    A recently written executable is cached in larger folios, with fewer TLB misses: up to 5 % of the CPU time
    (docs/results). Executables that are not readable, or are running, stay cached.
    """
    programs = {Path(one.program("postgres")).resolve() for one in installations}
    for program in programs if len(programs) > 1 else ():
        if os.access(program, os.R_OK):
            drop_file_from_page_cache(program)


def wal_kept(variant: Variant, needed_bytes: int) -> int:
    """Return the bytes of WAL segments to prepare: all that are needed, regardless of most settings.

    A variant with min_wal_size below PostgreSQL's default gets only that much, so that the cost of missing
    segments is measured. Raises: SettingError if its min_wal_size is not a valid size.
    """
    min_wal_size = variant.gucs.get("min_wal_size")
    if min_wal_size is None:
        return needed_bytes
    kept_bytes = int(normalise(min_wal_size, "MB", name="min_wal_size") * (1 << 20))
    return min(needed_bytes, kept_bytes) if kept_bytes < _KEPT_BY_DEFAULT_BYTES else needed_bytes


def _start(instance: Instance, variant: Variant) -> None:
    """Start a server.

    Raises: HugePagesError if pages were reserved for it, but another process took some.
    """
    try:
        instance.start()
    except ServerStartError as error:
        has_reserved = any(kind_of(path) == HUGE_PAGES for path in variant.files)
        if not has_reserved or _NO_PAGES not in (error.detail or ""):
            raise
        raise HugePagesError(
            f"huge pages reserved for the server of {variant.name} are in use by another process",
            detail=error.detail,
            hint="a server with huge_pages=try, the default, takes any free huge pages: start no other "
            "server during the measurement, or leave out the pool with --layers application",
        ) from error


def _explain_kill(limited: Sequence[Instance], error: PgdynoError) -> None:
    """Raise ServerCrashedError if the kernel killed a process of a server for exceeding its memory limit."""
    for instance in limited:
        if instance.memory is not None and instance.memory_kills():
            limit = numbers.size(instance.memory.limit_bytes)
            raise ServerCrashedError(
                f"the kernel killed a process of a server that exceeded its memory limit of {limit}",
                detail=instance.last_log_lines(),
                hint="lower its shared_buffers, maintenance_work_mem or number of clients",
            ) from error


def build_note(one: Installation, other: Installation, account: Account, *, is_accepted: bool = False) -> str:
    """Return a note on the differences between two builds.

    It begins with CONFOUNDED if they differ in more than their version; with "accepted" if ``is_accepted``.
    """
    mark = "accepted" if is_accepted else "CONFOUNDED"
    pair = f"{one.name} and {other.name}"
    builds = []
    for installation in (one, other):
        build = _build(installation, account)
        if isinstance(build, Unknown):
            return f"{mark}: the configuration of {installation.name} is unknown ({build.reason})"
        builds.append(build)
    differences = build_differences(*builds)
    listed = "; ".join(difference.sentence for difference in differences)
    if is_confounded(differences):
        return f"{mark}: {pair} differ in more than their version: {listed}"
    return f"{pair} were built the same way" + (f"; {listed}" if listed else "")


def patch_note(installation: Installation, account: Account) -> str | None:
    """Return a note on a server that reports patched sources; None for all others."""
    found = installation.build_configuration(account).value
    patches = () if isinstance(found, Unknown) else patches_in(found)
    if not patches:
        return None
    return f"PATCHED: {installation.title} is not PostgreSQL as it was released: {', '.join(patches)}"


def _build(installation: Installation, account: Account) -> Build | Unknown:
    found = installation.build_configuration(account).value
    if isinstance(found, Unknown):
        return found
    return parse_build(installation.name, found, version_text=installation.version_text().or_else(""))
