"""What a build is tried with before it is installed, on real servers: each passes, and each can fail."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from tests.fix_huge_pages import needs_huge_pages

from pgdyno.base.errors import InstallationError
from pgdyno.builds.optimise.huge_text import SOURCE
from pgdyno.builds.verifying.crashes import survive_crashes
from pgdyno.builds.verifying.verification import (
    least_moved_bytes,
    query_all,
    require_equal,
    require_same_data,
)
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.server

PORT = 5998


@pytest.fixture
def sockets(workspace: Workspace) -> Iterator[Path]:
    with workspace.scratch() as scratch, workspace.sockets(scratch) as path:
        yield path


@pytest.fixture(scope="module")
def initialised(home: Path, pg18_bin: Path) -> Iterator[Path]:
    account = current_account()
    with Workspace(home, account).scratch() as scratch:
        initialise(installation_at(pg18_bin, account), account, scratch / "data")
        yield scratch / "data"


@pytest.fixture
def data(workspace: Workspace, initialised: Path) -> Iterator[Path]:
    with workspace.scratch() as scratch:
        subprocess.run(["cp", "--archive", str(initialised), str(scratch / "data")], check=True)
        yield scratch / "data"


@contextmanager
def server_of(
    installation: Installation, data: Path, sockets: Path, settings: Mapping[str, str]
) -> Iterator[Instance]:
    made = Instance(installation, current_account(), data, sockets, PORT, settings)
    try:
        yield made
    finally:
        made.stop(is_immediate=True)


def test_a_build_gives_the_same_answers_as_itself_and_one_that_differs_in_its_last_bit_is_seen(
    installation: Installation, data: Path, sockets: Path
) -> None:
    answers = []
    for digits in ("1", "1", "0"):  # 0: fifteen digits, one or two fewer than make the value out
        settings = {"fsync": "off", "extra_float_digits": digits}
        with server_of(installation, data, sockets, settings) as server, server.running():
            answers.append(query_all(server))
            with closing(server.connect()) as connection:
                left = connection.execute("SELECT 1 FROM pg_database WHERE datname = 'answers'").fetchone()
            assert left is None
    first, second, shorter = answers
    assert require_equal(first, second) > 60_000
    assert any("0.0" in line for line in first[next(iter(first))])
    with pytest.raises(InstallationError, match="gives a different result than the plain build"):
        require_equal(first, shorter)


@needs_huge_pages
@pytest.mark.skipif(shutil.which("gcc") is None, reason="not installed: gcc (apt install gcc libc6-dev)")
def test_machine_code_counts_if_every_process_has_it_on_huge_pages_and_again_after_a_restart(
    installation: Installation, data: Path, sockets: Path
) -> None:
    library = sockets / "huge_text.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(library)], check=True)
    library.chmod(0o755)
    with server_of(installation, data, sockets, {"fsync": "off"}) as server:
        assert least_moved_bytes(server) == 0
        server.environment = {"LD_PRELOAD": str(library)}
        assert least_moved_bytes(server) >= 2 << 20
        server.environment = {}
        assert least_moved_bytes(server) == 0


def test_data_move_between_servers_both_ways(installation: Installation, data: Path, sockets: Path) -> None:
    with (
        does_not_raise(),
        server_of(installation, data, sockets, {"fsync": "off"}) as one,
        server_of(installation, data, sockets, {"fsync": "off"}) as other,
    ):
        require_same_data(one, other)


class Forgetful(Instance):
    """A server that has lost a row whenever it starts."""

    def start(self) -> None:
        super().start()
        with closing(self.connect()) as connection:
            connection.execute("DELETE FROM moved WHERE id = (SELECT max(id) FROM moved)")


def test_data_that_are_read_otherwise_are_seen(installation: Installation, data: Path, sockets: Path) -> None:
    forgetful = Forgetful(installation, current_account(), data, sockets, PORT, {"fsync": "off"})
    with (
        server_of(installation, data, sockets, {"fsync": "off"}) as one,
        pytest.raises(InstallationError, match="reads different data") as caught,
    ):
        require_same_data(one, forgetful)
    assert "written: 5000\t" in (caught.value.detail or "")


def test_no_acknowledged_commit_is_lost_in_crashes(
    installation: Installation, data: Path, sockets: Path
) -> None:
    shares: list[float] = []
    with (
        server_of(installation, data, sockets, {}) as one,
        server_of(installation, data, sockets, {}) as other,
    ):
        assert survive_crashes((one, other), 2, shares.append) == 4
    assert shares == [0.2, 0.4, 0.6, 0.8, 1.0]


def test_a_server_that_acknowledges_too_early_is_caught(
    installation: Installation, data: Path, sockets: Path
) -> None:
    early = {"synchronous_commit": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}
    with (
        server_of(installation, data, sockets, early) as server,
        pytest.raises(InstallationError, match="lacks acknowledged commits") as caught,
    ):
        survive_crashes((server,), 5, lambda _: None)
    assert "acknowledged" in (caught.value.detail or "")
