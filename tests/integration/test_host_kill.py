"""Processes that change the machine are killed at 500 places; a revert afterwards gives everything back.

They are killed with SIGKILL before any one of their operations on files, or in the middle of a line of the
journal. Then /proc, /sys and the journal are as they are promised to be.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.fix_home import pgdyno
from tests.fix_machine import POOL, SWAPPINESS, Machine
from tests.integration.host_driver import Ask, asking, carry_out

from pgdyno.journal.log import FILE, read_journal

pytestmark = pytest.mark.root

POINTS = 125  # of each of four tests below
BY_COMMAND = 40  # every so many points the command itself reverts
WITH_SCHEDULER = 4  # and an I/O scheduler is switched, which takes the kernel tens of milliseconds
POOLS, PAGES = 10, 1000  # that a process is killed while it fills
NEEDED_BYTES = 8 << 30  # arbitrary: four times what such a pool takes
ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """The driver."""
    with asking() as ask:
        yield ask


@dataclass
class Life:
    """A journal of its own, and the processes that work with it one after the other."""

    ask: Ask
    machine: Machine
    home: Path
    values: dict[str, str]
    before: dict[str, str]
    said: list[str] = field(default_factory=list)
    written: bytes = b""

    @property
    def file(self) -> Path:
        """The journal's file."""
        return self.home / "journal" / FILE

    def run(self, action: str, **task: Any) -> dict[str, Any]:
        """Let a process do something. Whatever becomes of it, what was written before stays written."""
        answer = self.ask(action, self.file.parent, values=self.values, **task)
        self.said.append(f"{action}: {answer['said']}")
        content = self.file.read_bytes() if self.file.exists() else b""
        assert content.startswith(self.written), self.said
        self.written = content
        return answer

    def killed(self, action: str, dice: random.Random, most: int) -> None:
        """Let a process be killed before one of its first ``most`` operations."""
        answer = self.run(action, kill_before=dice.randint(1, most), is_torn=dice.random() < 0.5)
        assert answer["said"].startswith("killed before operation"), self.said

    def is_restored(self, *, by_command: bool = False) -> None:
        """Revert, and see that everything is as it was before, and that the journal says so."""
        if by_command:
            done = pgdyno("revert", "--host-only", "--all", PGDYNO_HOME=str(self.home))
            assert done.returncode == 0, (self.said, done.stderr)
        else:
            assert self.run("restore")["said"] == "done", self.said
        assert self.machine.snapshot() == self.before, self.said
        contents = read_journal(self.file.parent)
        assert (contents.open, contents.damage, contents.is_torn) == ((), (), False), self.said
        assert stat.S_IMODE(self.file.stat().st_mode) == 0o600

    @property
    def has_scheduler(self) -> bool:
        """Whether an I/O scheduler is switched."""
        return self.machine.scheduler in self.values


Begin = Callable[..., Life]


@pytest.fixture
def begin(ask: Ask, machine: Machine) -> Iterator[Begin]:
    """Begins a life with a fresh journal, in memory: what a killed process has written is not lost there."""
    before = machine.snapshot()
    memory = Path("/dev/shm")
    parent = Path(tempfile.mkdtemp(prefix="pgdyno-kill-", dir=memory if memory.is_dir() else None))

    def begun(dice: random.Random, *, has_scheduler: bool) -> Life:
        wanted = machine.others().items()
        items = [item for item in wanted if has_scheduler or item[0] != machine.scheduler]
        dice.shuffle(items)
        return Life(ask, machine, Path(tempfile.mkdtemp(dir=parent)), dict(items), before)

    yield begun
    shutil.rmtree(parent)


def lives(begin: Begin, seed: int, count: Callable[[Life], int]) -> Iterator[tuple[random.Random, Life, int]]:
    """Yield as many lives as there are points, with the number of operations in which it may be killed.

    ``count`` tells that number: it lets an action come to its end.
    """
    dice = random.Random(seed)  # noqa: S311 — reproducible
    most = {has: count(begin(dice, has_scheduler=has)) for has in (False, True)}
    for point in range(POINTS):
        life = begin(dice, has_scheduler=point % WITH_SCHEDULER == 0)
        yield dice, life, most[life.has_scheduler]
        life.is_restored(by_command=point % BY_COMMAND == 0)


def operations(life: Life, action: str, said: str = "done") -> int:
    """Return how many operations on files an action takes if nobody kills it."""
    answer = life.run(action)
    assert answer["said"].startswith(said), answer
    life.is_restored()
    return int(answer["operations"])


def test_a_change_killed_before_any_operation_is_undone(begin: Begin) -> None:
    for dice, life, most in lives(begin, 1, lambda life: operations(life, "change")):
        life.killed("change", dice, most)


def test_a_revert_killed_before_any_operation_is_finished_by_the_next_one(begin: Begin) -> None:
    def count(life: Life) -> int:
        assert life.run("change")["said"] == "done"
        return operations(life, "restore")

    for dice, life, most in lives(begin, 2, count):
        assert life.run("change")["said"] == "done"
        life.killed("restore", dice, most)
        for _ in range(dice.randint(0, 2)):  # the next ones may be killed as well, or come to their end
            life.run("restore", kill_before=dice.randint(1, most), is_torn=dice.random() < 0.5)


def test_a_trial_killed_before_any_operation_is_undone(begin: Begin) -> None:
    for dice, life, most in lives(begin, 3, lambda life: operations(life, "hold")):
        life.killed("hold", dice, most)


def test_a_change_that_the_kernel_refuses_is_undone_wherever_it_is_killed(begin: Begin) -> None:
    """The last of all values is refused, so that the process itself takes the others back."""

    def refuse(life: Life) -> Life:
        del life.values[SWAPPINESS]
        life.values[SWAPPINESS] = "9999"  # the kernel takes 200 at most
        return life

    for dice, life, most in lives(begin, 4, lambda life: operations(refuse(life), "hold", "SettingError")):
        refuse(life).killed("hold", dice, most)


def test_a_change_killed_while_the_kernel_looks_for_pages_is_undone(begin: Begin) -> None:
    """The kernel stops looking then, and keeps what it has found."""
    if available_bytes() < NEEDED_BYTES:
        pytest.skip("this machine has too little memory to reserve some of it")
    dice = random.Random(5)  # noqa: S311 — reproducible
    for _ in range(POOLS):
        life = begin(dice, has_scheduler=False)
        found = pages()
        life.values = {POOL: str(found + PAGES)}
        child = os.fork()
        if child == 0:
            try:
                carry_out({"action": "change", "journal": str(life.file.parent), "values": life.values})
            finally:
                os._exit(0)
        enough = found + dice.randint(1, PAGES)
        while pages() < enough and os.waitid(os.P_PID, child, ENDED) is None:
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        life.is_restored()


def pages() -> int:
    """Return how many huge pages there are in the pool now."""
    return int(Path(POOL).read_text())


def available_bytes() -> int:
    """Return the memory that could be taken without swapping."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
