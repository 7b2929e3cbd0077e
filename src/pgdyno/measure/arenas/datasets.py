"""Load each data set once per PostgreSQL version, and copy it for every arm."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pgdyno.base import numbers
from pgdyno.base.errors import GeneratorError, StorageError
from pgdyno.base.ports import Progress
from pgdyno.base.time_left import TimeLeft
from pgdyno.load._contract import Target
from pgdyno.load.tpchgen import ReportShare
from pgdyno.model.experiments.workload import DataSet
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.process.dump import create_database, restore_dump
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import DATABASE, SUPERUSER, Instance, initialise
from pgdyno.postgres.process.workspace import Workspace

_PORT = 5432  # any: the socket directory is private
_WAL_BYTES = 1 << 30  # bound on the WAL in a newly loaded data directory
# A restored database may set a search path with planted operators and views.
_EMPTY_SEARCH_PATH = "SET search_path = ''"
_HAS_PREWARM = """
SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name OPERATOR(pg_catalog.=) 'pg_prewarm'
"""

Fill: TypeAlias = Callable[[Target, DataSet, Path, Mapping[str, str], ReportShare], None]
"""Loads a data set into an empty database, as ``Loads.fill``."""


def is_loaded(workspace: Workspace, data_set: DataSet, installation: Installation) -> bool:
    """Whether the workspace's account has loaded a data set.

    A data set loaded by another account does not count: that user may have changed the files.
    """
    place = _place_of(workspace, data_set, installation)
    return place.is_dir() and place.stat().st_uid == workspace.account.uid


def _place_of(workspace: Workspace, data_set: DataSet, installation: Installation) -> Path:
    machine = f"{installation.foreign_machine}-" if installation.foreign_machine else ""
    libraries = "" if data_set.dump is None else f"-{_libraries_of(installation)}"
    return workspace.datasets() / f"pg{installation.version}-checksums-{machine}{data_set.key}{libraries}"


def _libraries_of(installation: Installation) -> str:
    """Return a hash that changes with the build and the C library, which order texts in indexes."""
    build = installation.bin_directory, installation.version_text().value, platform.libc_ver()
    return hashlib.sha256(repr(build).encode()).hexdigest()[:8]


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
            self._remove(target)
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
                    f"could not copy the data set {source.name}", detail=message.strip()[-800:]
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

    def _remove(self, target: Path) -> None:
        """Remove a data set loaded by another account. Raises: StorageError."""
        self.progress.step(f"removing {target.name}, loaded by another account")
        try:
            shutil.rmtree(target)
        except OSError as error:
            raise StorageError(
                f"could not remove the data set {target.name}, loaded by another account",
                detail=str(error),
                hint=f"remove {target}, or set PGDYNO_HOME to another directory",
            ) from error

    def _load(self, data_set: DataSet, installation: Installation, data_directory: Path) -> None:
        account = self.workspace.account
        # Explicit, for equal data in all major versions: initdb enables checksums by default since 18.
        initialise(installation, account, data_directory, ["--data-checksums"])
        # A large WAL speeds up loading; without recycling, the last checkpoint removes most of it.
        settings = {"max_wal_size": "4GB", "maintenance_work_mem": "256MB", "wal_recycle": "off"}
        with self.workspace.sockets(self.scratch) as sockets:
            server = Instance(
                installation,
                account,
                data_directory,
                sockets,
                _PORT,
                settings,
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
                with server_errors_converted(), server.connect(DATABASE) as connection:
                    connection.execute(_EMPTY_SEARCH_PATH)
                    connection.execute("VACUUM (FREEZE, ANALYZE)")
                    connection.execute("CHECKPOINT")

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
            if "No space left on device" in log:
                raise StorageError("the disk filled up during the load", detail=log) from error
            raise
