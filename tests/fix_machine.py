"""The machine that the tests run on: changed for real, by one test at a time, and put back whatever happens.

What its files hold is read here without any code of pgdyno. A test that is killed leaves a record of that in
one fixed place, whatever has become of its home: the next test that changes the machine puts it back, and so
does ``python -m tests.fix_machine``, with what a killed measurement has left.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from pgdyno.apply.host_state import this_host
from pgdyno.apply.ledger.log import read_journal

SWAPPINESS = "/proc/sys/vm/swappiness"
DIRTY, DIRTY_RATIO = "/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"
BACKGROUND, BACKGROUND_RATIO = "/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"
AUTOGROUP = "/proc/sys/kernel/sched_autogroup_enabled"
THP_POLICY = "/sys/kernel/mm/transparent_hugepage/enabled"
THP_SHARED = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
DEFRAG = "/sys/kernel/mm/transparent_hugepage/defrag"
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
SURPLUS = "/sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages"
LENDING = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages"
POOL_1GB = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
FLOWS = "/proc/sys/net/core/rps_sock_flow_entries"
_FIXED = (
    SWAPPINESS, DIRTY, DIRTY_RATIO, BACKGROUND, BACKGROUND_RATIO, AUTOGROUP, THP_POLICY, THP_SHARED, DEFRAG,
    POOL, LENDING, POOL_1GB, FLOWS,
)  # fmt: skip
_POLLING = "/sys/module/haltpoll/parameters"
_PERSISTED = (
    "/etc/sysctl.d/60-pgdyno.conf",
    "/etc/udev/rules.d/60-pgdyno.rules",
    "/etc/tmpfiles.d/60-pgdyno.conf",
)
_LENT = 4096  # 8 GB: for servers of this test and of those beside it
_CHOICE = re.compile(r"\[([^]]*)\]")


@dataclass(frozen=True)
class Machine:
    """The machine that we run on. ``queue`` is the directory of an unused block device's queue, if any is."""

    queue: str | None

    @property
    def scheduler(self) -> str:
        """The file with the unused device's I/O scheduler."""
        return f"{self.queue}/scheduler"

    @property
    def read_ahead(self) -> str:
        """The file with the unused device's read-ahead in kB."""
        return f"{self.queue}/read_ahead_kb"

    @property
    def depth(self) -> str:
        """The file with the depth of the unused device's queue."""
        return f"{self.queue}/nr_requests"

    def snapshot(self) -> dict[str, str]:
        """Return what all files hold that tests change, and those that the kernel changes with them.

        Of huge pages it is those that stay: another server that happens to start may borrow one for its time.
        """
        paths = (*_FIXED, *self._of_queue())
        found = {path: Path(path).read_text() for path in paths if Path(path).exists()}
        if POOL in found:
            found[POOL] = f"{_pages_that_stay()}\n"
        return found

    def set(self, path: str, value: str) -> None:
        """Write a file as an administrator would."""
        Path(path).write_text(f"{value}\n")

    def others(self) -> dict[str, str]:
        """Return for every file another value than it has; one huge page more, too few for any server."""
        now = {path: chosen(text) for path, text in self.snapshot().items()}
        wanted = {
            SWAPPINESS: ("7", "8"),
            BACKGROUND: ("67108864", "134217728"),
            DIRTY: ("536870912", "1073741824"),
            AUTOGROUP: ("0", "1"),
            DEFRAG: ("defer", "madvise"),
            self.read_ahead: ("64", "256"),
            self.scheduler: ("mq-deadline", "none"),
            POOL: (str(int(now.get(POOL, "0")) + 1),),
        }
        return {
            path: next(value for value in values if value != now[path])
            for path, values in wanted.items()
            if path in now
        }

    def put_back(self, before: Mapping[str, str]) -> None:
        """Write back what a snapshot holds; twice, because some values belong to others."""
        for _ in range(2):
            for path, text in before.items():
                if self.snapshot().get(path) != text:
                    with suppress(OSError):  # a 0 that stands for a ratio is written by the ratio
                        self.set(path, chosen(text))

    def _of_queue(self) -> list[str]:
        if self.queue is None:
            return []
        tunables = sorted(map(str, Path(self.queue).glob("iosched/*")))
        return [self.scheduler, self.depth, self.read_ahead, *tunables]


def _pages_that_stay() -> int:
    """Return the pages in the pool that are not lent, read while nobody gives any back."""
    total, before = int(Path(POOL).read_text()), -1
    surplus = 0
    while total != before:
        before, surplus = total, int(Path(SURPLUS).read_text())
        total = int(Path(POOL).read_text())
    return total - surplus


def chosen(text: str) -> str:
    """Return a file's value: the choice in brackets, or the line."""
    choice = _CHOICE.search(text)
    return choice[1] if choice else text.strip()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that kills processes at more places."""
    parser.addoption("--all-behaviours", action="store_true", help="hostile servers: all, not a sample")
    parser.addoption("--all-kill-points", action="store_true", help="kill at all places, not at a sample")


@pytest.fixture
def machine() -> Iterator[Machine]:
    """The machine, for a test of its own; what the test has left changed is put back, and fails it."""
    if os.geteuid() != 0:
        pytest.skip("changing the machine takes root")
    with alone():
        found = Machine(_unused_queue())
        if not _may_be_written():
            pytest.skip("the kernel's files may not be written here, as in most containers")
        before = found.snapshot()
        yield found
        after = found.snapshot()
        found.put_back(before)
        assert after == before
        assert found.snapshot() == before


nothing_beside = pytest.mark.skipif(
    os.environ.get("PGDYNO_NOTHING_BESIDE") != "1",
    reason="servers of other tests would take its huge pages: make test-machine",
)


def _place() -> Path:
    """Return where the lock and the record lie: root's last as long as the kernel keeps its values."""
    is_roots = os.geteuid() == 0 and os.access("/run", os.W_OK)
    return Path("/run" if is_roots else tempfile.gettempdir())


@contextmanager
def alone(place: Path | None = None) -> Iterator[None]:
    """Wait until no other process of the tests changes the machine; put back what a killed one has left."""
    with _locked(place or _place()) as record:
        _give_back(record)
        if os.geteuid() == 0:
            written = record.with_suffix(".new")
            written.write_text(json.dumps(_state()))
            written.rename(record)
        try:
            yield
        finally:
            record.unlink(missing_ok=True)


@contextmanager
def _locked(place: Path) -> Iterator[Path]:
    """Hold the lock meanwhile; yield the place of the record."""
    name = f"pgdyno-test-machine-{os.geteuid()}"
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place / f"{name}.json"


def _state() -> dict[str, str | None]:
    """Return what all files hold that tests change; None for one that is not there."""
    polling = (str(path) for path in Path(_POLLING).glob("*"))
    files = {
        path: Path(path).read_text() if Path(path).exists() else None for path in (*_PERSISTED, *polling)
    }
    return {**files, **Machine(_unused_queue()).snapshot()}


def _give_back(record: Path) -> list[str]:
    """Put back what a killed test has left, and say what that was."""
    if not record.exists():
        return []
    before, said = json.loads(record.read_text()), []
    for _ in range(2):  # because some values belong to others
        now = _state()
        for path, text in before.items():
            if now.get(path) != text:
                said.append(f"{path}: {_shown(now.get(path))} -> {_shown(text)}")
                with suppress(OSError):  # a 0 that stands for a ratio is written by the ratio
                    _write(Path(path), text)
    record.unlink()
    return list(dict.fromkeys(said))


def _write(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
    else:
        path.write_text(text if str(path) in _PERSISTED else f"{chosen(text)}\n")


def _shown(text: str | None) -> str:
    return "no such file" if text is None else chosen(text)


def give_back(place: Path | None = None) -> list[str]:
    """Put back what killed tests and measurements have left on the machine, and say what that was."""
    with _locked(place or _place()) as record:
        said = _give_back(record)
        state = this_host()
        left = [one for one in read_journal(state.journal_directory).open if one.is_of_trial]
        before = _state()
        state.restore_left({one.key for one in left})
        after = _state()
    changed = (path for path in after if before.get(path) != after[path])
    return said + [f"{path}: {_shown(before.get(path))} -> {_shown(after[path])}" for path in changed]


@contextmanager
def lent_huge_pages() -> Iterator[None]:
    """Let the kernel lend huge pages to servers that ask for some, if we may."""
    file = Path(LENDING)
    try:
        before = file.read_text()
        file.write_text(f"{_LENT}\n")
    except OSError:  # no root, or a container
        yield
        return
    try:
        yield
    finally:
        file.write_text(before)


def _may_be_written() -> bool:
    """Whether this is a whole machine, and not a container that only sees it."""
    try:
        Path(SWAPPINESS).write_text(Path(SWAPPINESS).read_text())
        Path(POOL).write_text(str(_pages_that_stay()))  # with those that are lent, they all would stay
    except OSError:
        return False
    return True


def _unused_queue() -> str | None:
    """Return the queue of a loop device without a file."""
    sizes = sorted(Path("/sys/block").glob("loop*/size"))
    empty = (size.parent for size in sizes if int(size.read_text()) == 0)
    queues = (device / "queue" for device in empty)
    return next((str(queue) for queue in queues if "mq-deadline" in (queue / "scheduler").read_text()), None)


if __name__ == "__main__":
    for line in give_back(*map(Path, sys.argv[1:])) or ["nothing was left on the machine"]:
        sys.stdout.write(f"{line}\n")
