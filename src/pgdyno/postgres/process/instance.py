"""A scratch PostgreSQL instance that pgdyno starts, monitors and stops: data directory and postmaster."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.base.errors import DataDirectoryError, ServerCrashedError, ServerError, ServerStartError
from pgdyno.postgres.connection.control_connection import LONG_LIMIT_S, ControlConnection
from pgdyno.postgres.connection.libpq_environment import libpq_variables_unset
from pgdyno.postgres.connection.network_access import NetworkAccess
from pgdyno.postgres.process.account import Account, with_environment, with_scheduling_policy
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.memory_limit import MemoryGroup
from pgdyno.postgres.process.network import can_leave_network, without_network
from pgdyno.postgres.process.orphaned_servers import recorded
from pgdyno.postgres.process.processes import children, is_alive, is_stopped
from pgdyno.postgres.process.untrusted_file import read_own, read_own_end

_START_TIMEOUT_S = 60.0
_SLOW_START_TIMEOUT_S = 600.0  # under Valgrind's lackey: seconds, or over a minute on a busy host
_INITDB_TIMEOUT_S = 600.0  # arbitrary; it takes a second or two
_STOP_TIMEOUT_S = 60.0  # for each signal, before a stronger one is sent
_CONNECT_TIMEOUT_S = 120  # normally milliseconds; seconds on a busy host, half a minute there under lackey
_POLL_S = 0.02
_LOG_LINES = 20  # one process's crash, including recovery, takes about twelve
_COUNTS_WITHOUT_NETWORK = 15  # earlier versions send statistics by UDP, and autovacuum depends on them
SUPERUSER = "pgdyno"
DATABASE = "bench"  # of scratch servers


@dataclass
class Instance:
    """A scratch server on a Unix socket in a private directory.

    It listens on no network address, unless it has an entrance.

    Args:
        cpus: CPUs to which the postmaster and its children are pinned; None = all.
        settings: passed on the postmaster's command line, where they override the data directory's.
        environment: variables for the server program only.
        scheduling_policy: of sched(7), for the server program and its children; None = pgdyno's.
        memory: control group that limits its memory, created for each start; None = no limit.
        under: a wrapper program with its options, such as a simulator.
        has_network: False: the server's processes cannot reach the network, if the kernel allows that.
        entrance: network access for load hosts, with a password.
    """

    installation: Installation
    account: Account
    data_directory: Path
    socket_directory: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] | None = None
    environment: Mapping[str, str] | None = None
    scheduling_policy: str | None = None
    memory: MemoryGroup | None = None
    has_network: bool = True
    under: tuple[str, ...] = ()
    entrance: NetworkAccess | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _memory_kills: int = field(default=0, init=False)

    @property
    def log_file(self) -> Path:
        """The path of the server's log."""
        return self.data_directory.with_name(self.data_directory.name + ".log")

    @property
    def host(self) -> str:
        """The directory of its socket, for libpq's host parameter."""
        return str(self.socket_directory)

    @property
    def user(self) -> str:
        """The role that pgdyno connects as."""
        return SUPERUSER

    @property
    def dsn(self) -> str:
        """A connection string for the superuser of this instance."""
        return f"host={self.socket_directory} port={self.port} user={SUPERUSER} dbname=postgres"

    def connect(self, database: str = "postgres") -> ControlConnection:
        """Open a control connection, not for load, with the long limit for slow statements."""
        with libpq_variables_unset():
            connection = ControlConnection.connect(
                host=str(self.socket_directory),
                port=self.port,
                user=SUPERUSER,
                dbname=database,
                autocommit=True,
                client_encoding="UTF8",
                connect_timeout=_CONNECT_TIMEOUT_S,
            )
            connection.answer_limit_s = LONG_LIMIT_S
            return connection

    @property
    def reaches_network(self) -> bool:
        """Whether its processes can reach the network, by request or because it cannot be prevented."""
        can_do_without = self.installation.major >= _COUNTS_WITHOUT_NETWORK and can_leave_network()
        return self.has_network or not can_do_without

    @property
    def pid(self) -> int:
        """The postmaster's process id. Raises: ServerCrashedError if it is not running."""
        self.require_running()
        assert self._process is not None  # noqa: S101 — require_running has checked it
        return self._process.pid

    def start(self) -> None:
        """Start the postmaster and wait until it accepts connections.

        Raises: ServerStartError with the last lines of the server's log; DataDirectoryError for data of
        a different major version; ServerError if its memory cannot be limited; PrivilegeError if the account
        cannot reach its data.
        """
        self.account.require_entry(self.data_directory)
        check_data_directory(self.data_directory, self.installation)
        options = {
            "log_checkpoints": "on",
            **self.settings,
            "listen_addresses": "",  # the last value wins: no setting can make the server listen
            "unix_socket_directories": str(self.socket_directory),
            "port": str(self.port),
            **(self.entrance.settings() if self.entrance else {}),
        }
        argv = [*self.under, self.installation.program("postgres"), "-D", str(self.data_directory)]
        argv += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        argv = with_environment(argv, self.environment or {})
        if self.scheduling_policy is not None:
            argv = with_scheduling_policy(argv, self.scheduling_policy)
        command = self.account.command(argv, cpus=self.cpus, death_signal=signal.SIGINT)
        if not self.reaches_network:
            command = without_network(command)
        self._memory_kills = 0
        try:
            self._process = self._launch(command)
        finally:
            if self._process is None:  # after any exception, Ctrl-C included, stop() would do nothing
                self._clean_up()
        self._wait_until_ready()
        if self.entrance is not None:
            self.entrance.admit(self.connect)

    @contextlib.contextmanager
    def running(self, *, is_immediate: bool = False) -> Iterator[None]:
        """Start the server, and stop it at the end of the block or after any error, also in ``start``.

        Raises: as ``start`` and ``stop``.
        """
        try:
            self.start()
            yield
        finally:
            self.stop(is_immediate=is_immediate)

    def stop(self, *, is_immediate: bool = False) -> None:
        """Stop the server; ``is_immediate`` skips the shutdown checkpoint if the data will be discarded.

        SIGKILL is the last resort; it also ends a stopped postmaster.
        Raises: ServerError if the server could not be ended, or was not shut down cleanly (unless immediate).
        """
        if self._process is None:
            return
        try:
            self._end(self._process, is_immediate=is_immediate)
        finally:
            self._clean_up()

    def crash(self) -> None:
        """Simulate a crash: kill all processes of the server, so that none writes any more.

        Raises: ServerCrashedError if it was not running; ServerError if a process does not end.
        """
        self.require_running()
        assert self._process is not None  # noqa: S101 — require_running has checked it
        postmaster = self._process.pid
        self._process.send_signal(signal.SIGSTOP)  # it starts no more processes
        _await(lambda: is_stopped(postmaster), f"the postmaster {postmaster} did not stop at SIGSTOP")
        pids = children(postmaster)
        for pid in (postmaster, *pids):
            with contextlib.suppress(ProcessLookupError):  # it has exited already
                os.kill(pid, signal.SIGKILL)
        self._process.wait(_STOP_TIMEOUT_S)
        # While they are attached to the shared memory, no server can start on this data directory.
        _await(
            lambda: not any(map(is_alive, pids)), f"processes of the server did not end by SIGKILL: {pids}"
        )
        self._clean_up()

    def require_running(self) -> None:
        """Raise ServerCrashedError, with the server's log lines, if the postmaster has exited."""
        if self._process is None or self._process.poll() is not None:
            raise ServerCrashedError("the server is no longer running", detail=self.last_log_lines())

    def memory_kills(self) -> int:
        """Return how many of its processes were killed by its memory limit, also after its end."""
        return max(self._memory_kills, 0 if self.memory is None else self.memory.kills())

    def last_log_lines(self) -> str:
        """Return the end of the server's log."""
        if not self.log_file.is_file():
            return "there is no log file"
        lines = read_own_end(self.log_file).splitlines()
        # Skip continuation lines, which start with a tab: long statements would displace the messages.
        lines = [line for line in lines if not line.startswith("\t")]
        return "\n         ".join(lines[-_LOG_LINES:])

    def _launch(self, command: list[str]) -> subprocess.Popen[bytes]:
        if self.memory is not None:
            self.memory.create()
            command = self.memory.command(command)
        with self.log_file.open("ab") as log, recorded(self.data_directory) as lock, _sigint_not_ignored():
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.account.environment(),
                start_new_session=True,
                pass_fds=(lock,),
            )

    def _wait_until_ready(self) -> None:
        limit_s = _SLOW_START_TIMEOUT_S if self.under else _START_TIMEOUT_S
        deadline = time.monotonic() + limit_s
        while not self._is_ready():
            assert self._process is not None  # noqa: S101 — set by start
            if self._process.poll() is not None:
                lines = self.last_log_lines()
                self._clean_up()
                raise ServerStartError("the server did not start", detail=lines)
            if time.monotonic() > deadline:
                self.stop(is_immediate=True)
                raise ServerStartError(
                    f"the server was not ready within {limit_s:.0f} s", detail=self.last_log_lines()
                )
            time.sleep(_POLL_S)

    def _end(self, process: subprocess.Popen[bytes], *, is_immediate: bool) -> None:
        if process.poll() is not None:
            return
        if _ends_after(process, signal.SIGQUIT if is_immediate else signal.SIGINT):
            return
        if is_immediate or not _ends_after(process, signal.SIGQUIT):
            _kill(process)
        if not is_immediate:
            raise ServerError(
                f"the server did not shut down within {_STOP_TIMEOUT_S:.0f} s and was killed",
                detail=self.last_log_lines(),
            )

    def _clean_up(self) -> None:
        self._process = None
        if self.memory is not None:
            self._memory_kills = self.memory_kills()  # the kernel's count is removed with the group
            self.memory.remove()

    def _is_ready(self) -> bool:
        """Whether the eighth line of the postmaster's pid file is "ready", as pg_ctl checks it."""
        assert self._process is not None  # noqa: S101 — set by start
        try:
            lines = read_own(self.data_directory / "postmaster.pid").splitlines()
        except FileNotFoundError:  # not written yet, or removed after a failed start
            return False
        return len(lines) >= 8 and lines[0] == str(self._process.pid) and lines[7].strip() == "ready"


@contextlib.contextmanager
def _sigint_not_ignored() -> Iterator[None]:
    """Let a started server receive SIGINT even if pgdyno ignores it, as a script's background job does.

    A child process inherits ignored signals, but not handlers. So SIGINT gets a handler in the block.
    """
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if not is_ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _await(is_so: Callable[[], bool], otherwise: str) -> None:
    """Wait until a condition holds. Raises: ServerError with ``otherwise`` after the time limit."""
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise ServerError(
                f"{otherwise} within {_STOP_TIMEOUT_S:.0f} s",
                hint="it may wait for a disk that does not respond (state D in ps); dmesg may name it",
            )
        time.sleep(_POLL_S)


def _ends_after(process: subprocess.Popen[bytes], stop_signal: signal.Signals) -> bool:
    """Send a signal to a postmaster; return whether it exits within the limit."""
    process.send_signal(stop_signal)
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a postmaster and its children, each of which has its own process group.

    Raises: ServerError if the postmaster does not end.
    """
    for pid in children(process.pid):
        with contextlib.suppress(ProcessLookupError):  # it has exited already
            os.kill(pid, signal.SIGKILL)
    if not _ends_after(process, signal.SIGKILL):
        raise ServerError(
            f"the postmaster {process.pid} did not end within {_STOP_TIMEOUT_S:.0f} s of SIGKILL",
            hint="it may wait for a disk that does not respond (state D in ps); dmesg may name it",
        )


def initialise(
    installation: Installation, account: Account, data_directory: Path, options: Iterable[str] = ()
) -> None:
    """Create a data directory with the superuser ``SUPERUSER``.

    The directory itself is created here, because its parent may not be writable for the account. Local
    connections are trusted: only the server's user can enter the socket's directory.
    Raises: ServerStartError with initdb's message; PrivilegeError if the account cannot reach it.
    """
    account.require_entry(data_directory)
    data_directory.mkdir(mode=0o700, exist_ok=True)
    account.own(data_directory)
    argv = [
        installation.program("initdb"),
        f"--pgdata={data_directory}",
        f"--username={SUPERUSER}",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
        *options,
    ]
    with recorded(data_directory) as lock:
        done = account.run(argv, limit_s=_INITDB_TIMEOUT_S, pass_fds=(lock,))
    if done.returncode != 0:
        raise ServerStartError(
            f"could not create a data directory in {data_directory}",
            detail=done.stderr.decode(errors="replace").strip(),
        )


def check_data_directory(data_directory: Path, installation: Installation) -> None:
    """Check that this is a data directory of the installation's major version.

    Raises: DataDirectoryError.
    """
    version_file = data_directory / "PG_VERSION"
    if not version_file.is_file():
        raise DataDirectoryError(
            f'"{data_directory}" is not a data directory', detail="it has no file PG_VERSION"
        )
    found = read_own(version_file).strip()
    if found != str(installation.major):
        raise DataDirectoryError(
            f'"{data_directory}" belongs to PostgreSQL {found}',
            detail=f"the binaries in {installation.bin_directory} are version {installation.version}",
            hint=f"name the binaries of version {found} with --pg-bin",
        )
