"""Real servers that move their machine code: all of their processes, after a restart, and from a copy.

The object is preloaded into PostgreSQL of the wheel, which was not linked for it: its code is moved from the
first address on at which a huge page can begin.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.fix_huge_pages import needs_huge_pages
from tests.fix_servers import RealServer

from pgdyno.builds.optimise.huge_text import SOURCE, moved_bytes
from pgdyno.postgres.process.processes import children, read_process

MB = 1 << 20
pytestmark = [
    pytest.mark.server,
    needs_huge_pages,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheel's server is of x86-64 here"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="not installed: gcc (apt install gcc libc6-dev)"),
]


@pytest.fixture
def server(scratch_pg18: RealServer) -> Iterator[RealServer]:
    """A server that is started with the object."""
    library = scratch_pg18.directory / "huge_text.so"
    argv = ["gcc", "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(library)]
    subprocess.run(argv, check=True)
    library.chmod(0o755)
    scratch_pg18.stop()
    with started(replace(scratch_pg18, environment={"LD_PRELOAD": str(library)})) as one:
        yield one


@contextmanager
def started(server: RealServer) -> Iterator[RealServer]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


def moved_by_process(server: RealServer) -> dict[str, int]:
    """Return how much code is on huge pages: of the postmaster, a backend, and the least of all others."""
    with psycopg.connect(server.dsn) as client:
        backend = client.info.backend_pid
        others = [text for pid in children(server.pid) if pid != backend and (text := smaps_of(pid))]
        assert others
        return {
            "postmaster": moved_bytes(smaps_of(server.pid)),
            "backend": moved_bytes(smaps_of(backend)),
            "others": min(map(moved_bytes, others)),
        }


def smaps_of(pid: int) -> str:
    """Return what the kernel shows of a process; nothing if it has ended."""
    return read_process(pid, "smaps") or ""


def test_running_backends_have_their_code_on_huge_pages_and_after_a_restart_too(server: RealServer) -> None:
    first = moved_by_process(server)
    assert min(first.values()) >= 2 * MB
    assert len(set(first.values())) == 1
    server.restart()
    assert min(moved_by_process(server).values()) >= 2 * MB
    assert server.execute("SELECT sum(i) FROM generate_series(1, 1000) i") == [(500500,)]


def test_a_copied_program_needs_nobody_who_warms_it(server: RealServer, pg18_bin: Path) -> None:
    """Pages of a file in the cache would be lost with a copy: it is another file. The code moves itself."""
    server.stop()
    copy = server.directory / "copy"
    shutil.copytree(pg18_bin.parent, copy, symlinks=True)
    with started(replace(server, bin_directory=copy / pg18_bin.name, process=None)) as copied:
        program = Path(f"/proc/{copied.pid}/exe").readlink()
        assert program.is_relative_to(copy)
        assert min(moved_by_process(copied).values()) >= 2 * MB


def test_without_the_object_nothing_is_moved(scratch_pg18: RealServer) -> None:
    assert set(moved_by_process(scratch_pg18).values()) == {0}
