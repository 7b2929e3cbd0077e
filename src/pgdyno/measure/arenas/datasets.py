"""Load each data set once per PostgreSQL version, change its schema for variants, and copy it for every arm.

If any variant of an experiment has SQL, the data of all go through the same steps: copy of the loaded data,
start, SQL, ANALYZE, CHECKPOINT, stop. A fresh ANALYZE on one server alone would change plans by its sample.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.errors import DiskFull
from pydantic import TypeAdapter, ValidationError

from pgdyno.base import numbers
from pgdyno.base.errors import GeneratorError, SchemaChangeError, StorageError
from pgdyno.base.ports import Progress
from pgdyno.base.time_left import TimeLeft
from pgdyno.load._contract import Target
from pgdyno.load.tpchgen import ReportShare
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.variants.schema_sql import shown
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.connection import open_session
from pgdyno.postgres.connection.connection_errors import NO_SPACE, failures_explained, is_lost
from pgdyno.postgres.connection.control_connection import LONG_LIMIT_S, ControlConnection
from pgdyno.postgres.process.dump import COPY_ROLE, create_database, restore_dump
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import DATABASE, SUPERUSER, Instance, initialise
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.store.files import write_whole

_PORT = 5432  # any: the socket directory is private
_WAL_BYTES = 1 << 30  # bound on the WAL in a newly loaded data directory
# A restored database may set a search path with planted operators and views.
_EMPTY_SEARCH_PATH = "SET search_path = ''"
_HAS_PREWARM = """
SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name OPERATOR(pg_catalog.=) 'pg_prewarm'
"""

# A large WAL speeds up loads and index builds; without recycling, the last checkpoint removes most of it.
_LOADING = {"max_wal_size": "4GB", "maintenance_work_mem": "256MB", "wal_recycle": "off"}
_CHANGING = {**_LOADING, "autovacuum": "off"}  # it would work on some copies and not on others
_STEPS_VERSION = 1  # of the steps by which a schema is changed; counts changes of these
_MAKE_ROLE = f"""
CREATE ROLE {COPY_ROLE} LOGIN;
ALTER DATABASE {DATABASE} OWNER TO {COPY_ROLE}
"""
_TABLES = """
SELECT c.oid::pg_catalog.regclass::pg_catalog.text FROM pg_catalog.pg_class c
WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  AND c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['r', 'p']::pg_catalog."char"[])
  AND c.relowner OPERATOR(pg_catalog.=) current_user::pg_catalog.regrole::pg_catalog.oid
"""
_FILES = """
SELECT pg_catalog.pg_relation_filenode(c.oid), pg_catalog.pg_relation_size(c.oid) FROM pg_catalog.pg_class c
WHERE c.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
  AND pg_catalog.pg_relation_filenode(c.oid) IS NOT NULL
"""
_WAL = "SELECT pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), '0/0')::pg_catalog.int8"

Fill: TypeAlias = Callable[[Target, DataSet, Path, Mapping[str, str], ReportShare], None]
"""Loads a data set into an empty database, as ``Loads.fill``."""


def is_loaded(workspace: Workspace, data_set: DataSet, installation: Installation) -> bool:
    """Whether the workspace's account has loaded a data set.

    A data set loaded by another account does not count: that user may have changed the files.
    """
    return _is_ours(workspace, _place_of(workspace, data_set, installation))


def _is_ours(workspace: Workspace, place: Path) -> bool:
    return place.is_dir() and place.stat().st_uid == workspace.account.uid


def _place_of(workspace: Workspace, data_set: DataSet, installation: Installation) -> Path:
    machine = f"{installation.foreign_machine}-" if installation.foreign_machine else ""
    libraries = "" if data_set.dump is None else f"-{_libraries_of(installation)}"
    return workspace.datasets() / f"pg{installation.version}-checksums-{machine}{data_set.key}{libraries}"


def _libraries_of(installation: Installation) -> str:
    """Return a hash that changes with the build and the C library, which order texts in indexes."""
    build = installation.bin_directory, installation.version_text().value, platform.libc_ver()
    return hashlib.sha256(repr(build).encode()).hexdigest()[:8]


def schema_key(installation: Installation, statements: Sequence[str]) -> str:
    """Return a file name for a changed schema: equal keys mean equal steps with the same build."""
    steps = _STEPS_VERSION, tuple(statements), _libraries_of(installation)
    return f"sql{hashlib.sha256(repr(steps).encode()).hexdigest()[:12]}"


@dataclass(frozen=True)
class ChangeCost:
    """The cost of SQL on a copy of data: time, size of new and of dropped files, WAL."""

    time_s: float
    made_bytes: int
    dropped_bytes: int
    wal_bytes: int


@dataclass(frozen=True)
class DataSets:
    """Loaded data directories, by version and data set. They are never started, only copied.

    Loading happens in ``scratch``; the complete directory is then renamed. So an interrupted load never
    leaves an incomplete data set.
    """

    workspace: Workspace
    scratch: Path
    fill: Fill
    progress: Progress

    def ensure(self, data_set: DataSet, installation: Installation) -> Path:
        """Return a stopped, loaded data directory; load it if this account has not yet.

        Two builds of the same version for the same architecture share it: their data are byte-identical. Only
        copies of users' databases are separate, as the order of their texts may depend on the build.
        Raises: StorageError if the disk is too small, GeneratorError from the loading program.
        """
        target = _place_of(self.workspace, data_set, installation)
        if is_loaded(self.workspace, data_set, installation):
            return target
        if target.is_dir():
            self._remove(target, "loaded by another account")
        self.workspace.require_free(2 * data_set.size_bytes + _WAL_BYTES, f"the data set {data_set.key}")
        what = (
            "creating an empty data directory"
            if data_set.is_empty
            else f"loading {data_set.name}, {numbers.size(data_set.size_bytes)}"
        )
        self.progress.step(f"{what} (once)")
        partial = self.scratch / f"load-{target.name}"
        try:
            self._load(data_set, installation, partial)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # does nothing after the rename
        return target

    def changed(
        self, data_set: DataSet, installation: Installation, variant: Variant
    ) -> tuple[Path, ChangeCost]:
        """Return a stopped data directory with the variant's schema, made once, and the cost of its SQL.

        Raises: SchemaChangeError if the server rejects a statement; the directory is then not kept.
        StorageError if the disk is full, ServerCrashedError if the server ended.
        """
        target = self._changed_place(data_set, installation, variant.statements)
        is_ours, recorded = _is_ours(self.workspace, target), _read_cost(target)
        if is_ours and recorded is not None:
            return target, recorded
        if target.is_dir():
            why = "without a readable record of its cost" if is_ours else "made by another account"
            self._remove(target, why)
        loaded = self.ensure(data_set, installation)
        self.progress.step(f"preparing the data of {variant.name} (once)")
        partial = self.scratch / f"change-{target.name}"
        try:
            self.copy([(loaded, partial)])
            cost = self._change(data_set, installation, partial, variant)
            write_whole(_record(target), json.dumps(vars(cost)).encode())
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # does nothing after the rename
        return target, cost

    def missing_bytes(
        self, data_set: DataSet, installation: Installation, variant: Variant
    ) -> dict[Path, int]:
        """Return the disk space needed for directories that ``changed`` has not made yet, by path.

        A copy with new indexes, or rewritten tables, may take twice the size of the data.
        """
        loaded = _place_of(self.workspace, data_set, installation)
        changed = self._changed_place(data_set, installation, variant.statements)
        missing = [place for place in (loaded, changed) if not _is_ours(self.workspace, place)]
        return dict.fromkeys(missing, 2 * data_set.size_bytes + _WAL_BYTES)

    def _changed_place(
        self, data_set: DataSet, installation: Installation, statements: Sequence[str]
    ) -> Path:
        loaded = _place_of(self.workspace, data_set, installation)
        return loaded.with_name(f"{loaded.name}-{schema_key(installation, statements)}")

    def copy(self, copies: Sequence[tuple[Path, Path]]) -> None:
        """Copy data directories, each from a source to a target, and wait until all are on disk.

        Without the wait, the copies' writeback would be charged to the arm that checkpoints first. The
        servers' account runs the copy, because it could replace files that root would read by links.
        Raises: StorageError if the disk is full.
        """
        targets = [target for _, target in copies]
        for target in targets:
            if target.exists():
                shutil.rmtree(target)
            target.mkdir(mode=0o700)
            self.workspace.account.own(target)
        with ExitStack() as stack:
            running = [stack.enter_context(self._copying(*copy)) for copy in copies]
            errors = [(process.communicate()[1], process.returncode) for process in running]
        for (source, _), (message, code) in zip(copies, errors, strict=True):
            if code != 0:
                for target in targets:
                    shutil.rmtree(target, ignore_errors=True)
                raise StorageError(
                    f"could not copy the data set {source.name}",
                    detail=message.strip()[-800:],
                    hint=self.workspace.room_hint() if NO_SPACE in message else None,
                )
        self.workspace.account.run(["sync", "--file-system", *map(str, targets)]).check_returncode()

    @contextmanager
    def _copying(self, source: Path, target: Path) -> Iterator[subprocess.Popen[str]]:
        argv = ["cp", "--archive", "--reflink=auto", f"{source}/.", str(target)]
        process = subprocess.Popen(
            self.workspace.account.command(argv),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self.workspace.account.environment(),
            start_new_session=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()  # does nothing once it has exited

    def _remove(self, target: Path, why: str) -> None:
        """Remove a data set that cannot be used. Raises: StorageError."""
        self.progress.step(f"removing {target.name}, {why}")
        try:
            shutil.rmtree(target)
        except OSError as error:
            raise StorageError(
                f"could not remove the data set {target.name}, {why}",
                detail=str(error),
                hint=f"remove {target}, or set PGDYNO_HOME to another directory",
            ) from error

    def _load(self, data_set: DataSet, installation: Installation, data_directory: Path) -> None:
        account = self.workspace.account
        # Explicit, for equal data in all major versions: initdb enables checksums by default since 18.
        initialise(installation, account, data_directory, ["--data-checksums"])
        with self.workspace.sockets(self.scratch) as sockets:
            server = Instance(
                installation,
                account,
                data_directory,
                sockets,
                _PORT,
                _LOADING,
                has_network=data_set.dump is None,
            )
            with server.running():
                if data_set.dump is None:
                    with server.connect() as connection:
                        connection.execute(f"CREATE DATABASE {DATABASE}")
                else:
                    create_database(server, DATABASE, Path(data_set.dump))
                with server.connect(DATABASE) as connection:
                    if connection.execute(_HAS_PREWARM).fetchone():
                        connection.execute("CREATE EXTENSION pg_prewarm")
                if data_set.dump is not None:
                    self._restore(server, data_set, Path(data_set.dump))
                elif not data_set.is_empty:
                    self._fill(server, Target(str(sockets), _PORT, SUPERUSER, DATABASE), data_set)
                explained = self._explained(server, f"the load of {data_set.name}")
                with explained, server.connect(DATABASE) as connection:
                    connection.execute(_EMPTY_SEARCH_PATH)
                    connection.execute("VACUUM (FREEZE, ANALYZE)")
                    connection.execute("CHECKPOINT")

    def _change(
        self, data_set: DataSet, installation: Installation, data_directory: Path, variant: Variant
    ) -> ChangeCost:
        """Run a variant's SQL as the owner of the tables, who has no other rights; return its cost.

        A restored copy has this owner; tables of bundled workloads get it.
        """
        account = self.workspace.account
        with self.workspace.sockets(self.scratch) as sockets:
            server = Instance(
                installation, account, data_directory, sockets, _PORT, _CHANGING, has_network=False
            )
            owner = make_conninfo(host=server.host, port=_PORT, user=COPY_ROLE, dbname=DATABASE)
            if variant.statements and server.reaches_network:
                self.progress.step(f"{variant.name}: its SQL could access the network from here")
            explained = self._explained(server, f"the SQL of {variant.name}")
            with server.running(), explained, server.connect(DATABASE) as connection:
                connection.execute(_EMPTY_SEARCH_PATH)
                if data_set.dump is None:
                    connection.execute(_MAKE_ROLE)
                    for (table,) in connection.execute(_TABLES).fetchall():  # quoted by the server
                        connection.execute(f"ALTER TABLE {table} OWNER TO {COPY_ROLE}".encode())
                with closing(open_session(owner)) as session:
                    session.answer_limit_s = LONG_LIMIT_S
                    cost = _cost_of(lambda: _run(session, variant), connection)
                    _execute(session, "ANALYZE", variant, "the ANALYZE after it")
                connection.execute("CHECKPOINT")
        return cost

    def _explained(self, server: Instance, during: str) -> AbstractContextManager[None]:
        return failures_explained(during, server.last_log_lines, self.workspace.room_hint())

    def _restore(self, server: Instance, data_set: DataSet, dump: Path) -> None:
        if server.reaches_network:
            self.progress.step(f"{data_set.name}: code in it could access the network from here")
        for left_out in restore_dump(server, DATABASE, dump):
            self.progress.step(f"{data_set.name}: restored without {left_out}")

    def _fill(self, server: Instance, target: Target, data_set: DataSet) -> None:
        """Load the rows. Raises: StorageError if the server's disk filled up; GeneratorError."""
        output = server.data_directory.with_name("load.log")
        try:
            self.fill(target, data_set, output, {}, TimeLeft(self.progress).report)
        except GeneratorError as error:
            log = server.last_log_lines()
            if NO_SPACE in log:
                message = f"the disk filled up during the load of {data_set.name}"
                raise StorageError(message, detail=log, hint=self.workspace.room_hint()) from error
            raise


def _record(place: Path) -> Path:
    """Return the file with the cost of a changed schema, outside the directory that servers write to."""
    return place.with_name(f"{place.name}.json")


def _read_cost(place: Path) -> ChangeCost | None:
    """Return the recorded cost of a changed schema; None if the record is missing or damaged."""
    try:
        return TypeAdapter(ChangeCost).validate_json(_record(place).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _cost_of(run: Callable[[], None], connection: ControlConnection) -> ChangeCost:
    before, wal = _file_sizes(connection), _wal_bytes(connection)
    began_s = time.monotonic()
    run()
    time_s = time.monotonic() - began_s
    wal = _wal_bytes(connection) - wal  # before the sizes: reading these may write WAL
    after = _file_sizes(connection)
    return ChangeCost(
        time_s,
        sum(size for file, size in after.items() if file not in before),
        sum(size for file, size in before.items() if file not in after),
        wal,
    )


def _file_sizes(connection: ControlConnection) -> dict[int, int]:
    return {int(file): int(size) for file, size in connection.execute(_FILES).fetchall()}


def _wal_bytes(connection: ControlConnection) -> int:
    [[position]] = connection.execute(_WAL).fetchall()
    return int(position)


def _run(session: ControlConnection, variant: Variant) -> None:
    for number, statement in enumerate(variant.statements, 1):
        place = f'statement {number} of {len(variant.statements)}: "{shown(statement)}"'
        _execute(session, statement, variant, place)


def _execute(session: ControlConnection, statement: str, variant: Variant, place: str) -> None:
    """Run a statement as a transaction. Raises: SchemaChangeError with the server's message."""
    try:
        session.execute(statement.encode(), binary=True)  # the extended protocol: one statement at most
    except psycopg.Error as error:
        if is_lost(error) or isinstance(error, DiskFull):
            raise  # not the statement's fault
        raise SchemaChangeError(
            f"the SQL of {variant.name} failed at {place}",
            detail=error.diag.message_primary or str(error).strip(),
            hint="its data are not kept; repair the statement (tables outside of public need their schema), "
            "or leave it out",
        ) from error
