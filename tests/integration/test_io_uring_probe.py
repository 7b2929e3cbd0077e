"""Whether io_uring works here: the probe on real builds, with every cause made for real."""

from __future__ import annotations

import errno
import resource
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from pgdyno.host.probes import IoUringCause
from pgdyno.postgres.process.account import Account, current_account
from pgdyno.postgres.process.installation import Installation, installation_at
from pgdyno.postgres.process.instance import initialise
from pgdyno.postgres.process.io_uring import SWITCH, io_uring_obstacle
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import embedded
from pgdyno.studies.run import find_io_support

BUILT = Path("/var/lib/pgdyno/servers/source-18/bin")
REFUSE = Path(__file__).with_name("refuse_io_uring.py")

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]


@dataclass(frozen=True)
class Filtered(Account):
    """Runs everything under a filter that lets io_uring_setup fail."""

    error: int = 0

    def command(
        self,
        argv: Sequence[str],
        *,
        cpus: Iterable[int] | None = None,
        death_signal: signal.Signals = signal.SIGKILL,
    ) -> list[str]:
        wrapped = super().command(argv, cpus=cpus, death_signal=death_signal)
        return [sys.executable, str(REFUSE), str(self.error), *wrapped]


@pytest.fixture(scope="module")
def built() -> Installation:
    """A PostgreSQL 18 with liburing, on a kernel that lets everybody use io_uring."""
    if not BUILT.is_dir():
        pytest.skip("no build with liburing: pgdyno server install --from-source 18 --with-liburing")
    if SWITCH.is_file() and SWITCH.read_text().strip() != "0":
        pytest.skip(f"this kernel forbids io_uring: {SWITCH} is not 0")
    found = installation_at(BUILT, current_account())
    if "--with-liburing" not in found.build_configuration(current_account()).or_else(""):
        pytest.skip(f"the PostgreSQL in {BUILT} is built without liburing")
    return found


@pytest.fixture(scope="module")
def data_directory(home: Path, built: Installation) -> Iterator[Path]:
    place = workspace()
    assert place.root == home
    with place.scratch() as scratch:
        initialise(built, place.account, scratch / "data")
        yield scratch / "data"


def test_the_wheel_has_no_io_uring() -> None:
    found = find_io_support(embedded(), is_isolated=True)
    assert found.server.startswith("PostgreSQL 18.")
    assert found.io_uring_obstacle is not None
    assert found.io_uring_obstacle.cause is IoUringCause.NOT_COMPILED_IN


def test_nothing_stands_in_the_way_of_a_build_with_liburing(
    built: Installation, data_directory: Path
) -> None:
    before = sorted(data_directory.rglob("*"))
    assert io_uring_obstacle(built, current_account(), data_directory) is None
    assert sorted(data_directory.rglob("*")) == before


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (errno.EPERM, IoUringCause.FORBIDDEN),
        (errno.ENOSYS, IoUringCause.FORBIDDEN),
        (errno.ENOMEM, IoUringCause.MEMLOCK),
        (errno.EFAULT, IoUringCause.UNCLEAR),
    ],
)
def test_what_the_kernel_answers_is_told_apart(
    error: int, cause: IoUringCause, built: Installation, data_directory: Path
) -> None:
    user = current_account()
    account = Filtered(user.name, user.uid, user.gid, is_other=user.is_other, error=error)
    found = io_uring_obstacle(built, account, data_directory)
    assert found is not None
    assert found.cause is cause
    if error == errno.EPERM:
        assert "seccomp filter" in found.hint


def test_memory_that_may_not_be_locked_is_told(built: Installation, data_directory: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, hard))
    try:
        found = io_uring_obstacle(built, current_account(), data_directory)
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, hard))
    assert found is not None
    assert found.cause is IoUringCause.MEMLOCK
    assert "ulimit -l" in found.hint
