"""Co-location: proven by number, name, start time and data directory together, or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import START_LIMIT_S, STOP_LIMIT_S, RealServer, as_unprivileged
from tests.unit.host.machines import FixtureTree

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.processes.colocation import (
    Backend,
    boot_time_s,
    data_directory_argument,
    find_postmaster,
    locate_postmaster,
)

BOOT_S = 1_730_000_000
DATA = "/var/lib/postgresql/16/main"
# Process 700 started 5000 ticks of 1/100 s after boot.
BACKEND = Backend(pid=700, start_s=BOOT_S + 50.3, data_directory=DATA)


def add_process(
    root: Path,
    pid: int,
    *,
    parent: int,
    name: str = "postgres",
    start_ticks: int = 5000,
    own_pids: str | None = None,
) -> Path:
    place = root / f"proc/{pid}"
    place.mkdir(parents=True)
    fields = ["0"] * 50
    fields[0], fields[1], fields[19] = "S", str(parent), str(start_ticks)
    (place / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n", encoding="utf-8")
    (place / "status").write_text(
        f"Name:\t{name}\nPid:\t{pid}\nNSpid:\t{own_pids or pid}\n", encoding="utf-8"
    )
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a host with a postmaster 600, its backend 700 and a shell."""
    (add_process(tmp_path, 600, parent=1, start_ticks=100) / "cwd").symlink_to(DATA)
    add_process(tmp_path, 700, parent=600)
    add_process(tmp_path, 800, parent=1, name="bash")
    (tmp_path / "proc/stat").write_text(f"cpu  1 2 3\nbtime {BOOT_S}\n", encoding="utf-8")
    return tmp_path


def locate(root: Path, backend: Backend = BACKEND, forbidden: tuple[str, ...] = ()) -> Fact[int]:
    return locate_postmaster(FixtureTree(root, forbidden), backend)


def reason(fact: Fact[int]) -> str:
    assert isinstance(fact.value, Unknown)
    return fact.value.reason


def test_the_postmaster_is_the_backends_parent_in_the_data_directory(root: Path) -> None:
    assert locate(root) == Fact(600, "/proc/700/status, /proc/700/stat, /proc/600/cwd")


def test_a_trailing_slash_in_the_data_directory_does_not_matter(root: Path) -> None:
    assert locate(root, Backend(700, BACKEND.start_s, DATA + "/")).value == 600


def test_a_backend_that_is_not_here_is_on_another_host(root: Path) -> None:
    found = locate(root, Backend(701, BACKEND.start_s, DATA))
    assert reason(found) == "no process here has the backend's process id 701"


@pytest.mark.parametrize(("shift_s", "is_proven"), [(-1.9, True), (1.9, True), (-2.5, False), (2.5, False)])
def test_the_start_time_must_agree_within_two_seconds(root: Path, shift_s: float, is_proven: bool) -> None:  # noqa: FBT001
    found = locate(root, Backend(700, BOOT_S + 50 + shift_s, DATA))
    assert found.is_known is is_proven


def test_a_process_started_at_another_time_is_another_servers(root: Path) -> None:
    later = Backend(700, BOOT_S + 3650.0, DATA)
    assert reason(locate(root, later)) == "process 700 started 3600 s before the backend"


def test_a_process_of_another_program_is_not_the_backend(root: Path) -> None:
    assert (
        reason(locate(root, Backend(800, BACKEND.start_s, DATA))) == 'process 800 is "bash", not PostgreSQL'
    )


def test_a_backend_whose_parent_is_no_postmaster_proves_nothing(root: Path) -> None:
    add_process(root, 900, parent=800)
    assert (
        reason(locate(root, Backend(900, BACKEND.start_s, DATA))) == 'process 800 is "bash", not PostgreSQL'
    )


def test_another_data_directory_is_another_server(root: Path) -> None:
    found = locate(root, Backend(700, BACKEND.start_s, "/srv/other"))
    assert reason(found) == f"postmaster 600 has the data directory {DATA}, not /srv/other"


def test_a_server_in_a_container_is_found_by_the_number_it_has_there(root: Path) -> None:
    inside = "/var/lib/postgresql/data"
    (add_process(root, 48213, parent=1, start_ticks=200, own_pids="48213\t1") / "cwd").symlink_to(inside)
    add_process(root, 48290, parent=48213, own_pids="48290\t61")
    assert locate(root, Backend(61, BACKEND.start_s, inside)).value == 48213


def test_of_a_host_process_and_a_container_process_with_one_number_the_right_one_is_proven(
    root: Path,
) -> None:
    inside = "/var/lib/postgresql/data"
    (add_process(root, 48213, parent=1, own_pids="48213\t1") / "cwd").symlink_to(inside)
    add_process(root, 48290, parent=48213, own_pids="48290\t700")
    assert locate(root, Backend(700, BACKEND.start_s, inside)).value == 48213
    assert locate(root).value == 600


def test_a_data_directory_reached_over_a_link_is_the_same(root: Path) -> None:
    (root / "disk/pg").mkdir(parents=True)
    (root / "link").symlink_to("disk/pg")
    (root / "proc/600/cwd").unlink()
    (root / "proc/600/cwd").symlink_to("../../disk/pg")
    (root / "proc/600/root").symlink_to("../..")
    assert locate(root, Backend(700, BACKEND.start_s, "/link")).value == 600


def test_a_forbidden_working_directory_is_replaced_by_the_command_line(root: Path) -> None:
    forbidden = ("/proc/600/cwd",)
    assert reason(locate(root, forbidden=forbidden)) == "permission denied"
    arguments = root / "proc/600/cmdline"
    arguments.write_text(
        f"/usr/lib/postgresql/16/bin/postgres\0-D\0{DATA}\0-c\0port=5432\0", encoding="utf-8"
    )
    assert locate(root, forbidden=forbidden).value == 600
    arguments.write_text("postgres\0-D\0/srv/other\0", encoding="utf-8")
    assert reason(locate(root, forbidden=forbidden)) == "permission denied"


def test_without_a_boot_time_nothing_is_proven(root: Path) -> None:
    (root / "proc/stat").write_text("cpu  1 2 3\n", encoding="utf-8")
    assert reason(locate(root)) == "no btime"
    assert boot_time_s("btime 1730000000\n") == 1730000000.0


def test_what_the_server_hides_cannot_be_proven(root: Path) -> None:
    hidden_start = find_postmaster(root, backend_pid=700, backend_start=None, data_directory=DATA)
    assert reason(hidden_start) == "the server does not show when the backend started"
    hidden_place = find_postmaster(root, backend_pid=700, backend_start=BACKEND.start_s, data_directory=None)
    assert reason(hidden_place) == "the server does not show its data directory to this role"


@pytest.mark.parametrize(
    ("cmdline", "directory"),
    [
        ("postgres\0-D\0/data/\0", "/data"),
        ("postgres\0-D/data\0-p\x005433\0", "/data"),
        ("postgres\0-D\0", None),
        ("postgres\0-c\0data_directory=/data\0", None),
        ("", None),
    ],
)
def test_the_data_directory_is_the_argument_of_d(cmdline: str, directory: str | None) -> None:
    assert data_directory_argument(cmdline) == directory


ASK = """SELECT pid, extract(epoch FROM backend_start)::float8, current_setting('data_directory')
         FROM pg_stat_activity WHERE pid = pg_backend_pid()"""


def ask(dsn: str) -> tuple[psycopg.Connection, Backend]:
    """Open a connection and return what the server says about its backend; the caller closes it."""
    connection = psycopg.connect(dsn)
    row = connection.execute(ASK).fetchone()
    assert row is not None
    return connection, Backend(*row)


def prove(backend: Backend, data_directory: str | None = None) -> Fact[int]:
    return find_postmaster(
        Path("/"),
        backend_pid=backend.pid,
        backend_start=backend.start_s,
        data_directory=data_directory or backend.data_directory,
    )


@pytest.mark.server
def test_a_real_server_is_proven_to_run_here(pg18: RealServer) -> None:
    connection, backend = ask(pg18.dsn)
    with connection:
        assert prove(backend).value == pg18.pid
        place = backend.data_directory
        assert reason(prove(backend, "/nowhere")) == (
            f"postmaster {pg18.pid} has the data directory {place}, not /nowhere"
        )


def is_ready(server: RealServer) -> bool:
    pid_file = server.data_directory / "postmaster.pid"
    return pid_file.exists() and "\nready" in pid_file.read_text(encoding="utf-8")


@contextmanager
def in_a_pid_namespace(server: RealServer) -> Iterator[subprocess.Popen[bytes]]:
    """Run a stopped server as process 1 of a PID namespace, as container runtimes do."""
    postgres = [str(server.bin_directory / "postgres"), "-D", str(server.data_directory)]
    with server.log_file.open("ab") as log:
        process = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *as_unprivileged(), *postgres],
            stdout=log,
            stderr=log,
            cwd=server.directory,
            env={**os.environ, **server.environment},
        )
    try:
        deadline_s = time.monotonic() + START_LIMIT_S
        while not is_ready(server):
            assert process.poll() is None, server.log_file.read_text(encoding="utf-8")
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait(STOP_LIMIT_S)


@pytest.mark.server
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="making a PID namespace needs root")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare (util-linux) is not installed")
def test_a_real_server_in_a_container_is_proven_to_run_here(scratch_pg18: RealServer) -> None:
    scratch_pg18.stop()
    with in_a_pid_namespace(scratch_pg18) as process:
        connection, backend = ask(scratch_pg18.dsn)
        with connection:
            postmaster = prove(backend).or_else(0)
        assert scratch_pg18.pid == 1  # for itself; for us it is another
        assert postmaster > 1
        os.kill(postmaster, signal.SIGINT)
        process.wait(STOP_LIMIT_S)
