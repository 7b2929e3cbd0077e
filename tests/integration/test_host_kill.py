"""Processes that change the machine are killed at many places; a revert afterwards gives everything back.

They are killed with SIGKILL before any one of their operations on files, or in the middle of a line of the
journal. Then /proc, /sys, the files for the next start and the journal are as they are promised to be.
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
from tests.fix_machine import AUTOGROUP, DEFRAG, POOL, SWAPPINESS, Machine
from tests.integration.host_driver import IN_ANY_ETC, Ask, asking, carry_out

from pgdyno.apply.ledger import receipt
from pgdyno.apply.ledger.log import read_journal
from pgdyno.postgres.process.workspace import JOURNAL_FILE

pytestmark = pytest.mark.root

POINTS = 100  # of each of six tests below, or a sample of them
SAMPLE = 25  # arbitrary; if there are more kinds of operations, so many
BY_COMMAND = 40  # every so many points the command itself reverts
WITH_SCHEDULER = 4  # and an I/O scheduler is switched, which takes the kernel tens of milliseconds
POOLS, PAGES = 10, 1000  # that a process is killed while it fills
IN_ETC = 10  # every so many points it is the machine's own /etc in which files are written
NEEDED_BYTES = 8 << 30  # arbitrary: four times what such a pool takes
TURNED = (SWAPPINESS, AUTOGROUP, DEFRAG, POOL)  # what two arms that take turns may differ in here
FILES = (
    "/etc/sysctl.d/60-pgdyno.conf",
    "/etc/udev/rules.d/60-pgdyno.rules",
    "/etc/tmpfiles.d/60-pgdyno.conf",
)
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
    places: dict[str, tuple[Any, ...]]
    root: Path = Path("/")
    files: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    written: bytes = b""
    most: int = 0  # operations that its action takes if nobody kills it

    @property
    def file(self) -> Path:
        """The journal's file."""
        return self.home / "journal" / JOURNAL_FILE

    def run(self, action: str, **task: Any) -> dict[str, Any]:
        """Let a process do something. Whatever becomes of it, what was written before stays written."""
        answer = self.ask(action, self.file.parent, values=self.values, files=self.files, **task)
        self.said.append(f"{action}: {answer['said']}")
        content = self.file.read_bytes() if self.file.exists() else b""
        assert content.startswith(self.written), self.said
        self.written = content
        return answer

    def killed(self, action: str, dice: random.Random, number: int) -> None:
        """Let a process be killed before an operation, counted from 1."""
        answer = self.run(action, kill_before=number, is_torn=dice.random() < 0.5)
        assert answer["said"].startswith("killed before operation"), self.said

    def is_restored(self, *, by_command: bool = False) -> None:
        """Revert, and see that everything is as it was before, and that the journal says so."""
        if by_command:
            done = pgdyno("revert", "--host-only", "--all", PGDYNO_HOME=str(self.home))
            assert done.returncode == 0, (self.said, done.stderr)
        else:
            assert self.run("restore")["said"] == "done", self.said
        assert self.machine.snapshot() == self.before, self.said
        assert places_of(self.root) == self.places, self.said
        contents = read_journal(self.file.parent)
        assert (contents.open, contents.damage, contents.is_torn) == ((), (), False), self.said
        assert stat.S_IMODE(self.file.stat().st_mode) == 0o600

    @property
    def has_scheduler(self) -> bool:
        """Whether an I/O scheduler is switched."""
        return self.machine.scheduler in self.values


Begin = Callable[..., Life]
Lives = Callable[..., Iterator[tuple[random.Random, Life, int]]]


@pytest.fixture
def begin(ask: Ask, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Begins a life with a fresh journal, in memory: what a killed process has written is not lost there."""
    monkeypatch.setattr(receipt, "_PERSISTED", IN_ANY_ETC)
    before, places = machine.snapshot(), places_of(Path("/"))
    memory = Path("/dev/shm")
    parent = Path(tempfile.mkdtemp(prefix="pgdyno-kill-", dir=memory if memory.is_dir() else None))

    def begun(dice: random.Random, *, has_scheduler: bool) -> Life:
        wanted = machine.others().items()
        items = [item for item in wanted if has_scheduler or item[0] != machine.scheduler]
        dice.shuffle(items)
        return Life(ask, machine, Path(tempfile.mkdtemp(dir=parent)), dict(items), before, places)

    yield begun
    shutil.rmtree(parent)
    for path in sorted(places_of(Path("/")).keys() - places.keys(), reverse=True):  # what a failed test left
        Path(path).rmdir() if Path(path).is_dir() else Path(path).unlink()


@pytest.fixture
def lives(begin: Begin, pytestconfig: pytest.Config) -> Lives:
    """Yields lives, with the number of the operation before which a process is to be killed.

    ``count`` names the operations: it lets an action come to its end.
    """
    points = POINTS if pytestconfig.getoption("--all-kill-points") else SAMPLE

    def lived(seed: int, count: Callable[[Life], list[str]]) -> Iterator[tuple[random.Random, Life, int]]:
        dice = random.Random(seed)  # noqa: S311 — reproducible
        names = {has: count(begin(dice, has_scheduler=has)) for has in (False, True)}
        share = points // WITH_SCHEDULER
        chosen = [(True, number) for number in numbers(names[True], dice, share)]
        chosen += [(False, number) for number in numbers(names[False], dice, points - share, has_all=True)]
        for point, (has_scheduler, number) in enumerate(chosen):
            life = begin(dice, has_scheduler=has_scheduler)
            life.most = len(names[has_scheduler])
            yield dice, life, number
            life.is_restored(by_command=point % BY_COMMAND == 0)

    return lived


def numbers(names: list[str], dice: random.Random, least: int, *, has_all: bool = False) -> list[int]:
    """Draw at least so many operations, counted from 1; with ``has_all`` of every kind one at least."""
    drawn = [dice.randint(1, len(names)) for _ in range(least)]
    lacking = sorted(set(names) - {names[number - 1] for number in drawn}) if has_all else []
    return drawn + [
        dice.choice([number for number, name in enumerate(names, 1) if name == kind]) for kind in lacking
    ]


def operations(life: Life, action: str, said: str = "done") -> list[str]:
    """Return the names of the operations on files that an action takes if nobody kills it."""
    answer = life.run(action)
    assert answer["said"].startswith(said), answer
    life.is_restored()
    return list(answer["operations"])


def test_a_change_killed_before_any_operation_is_undone(lives: Lives) -> None:
    for dice, life, number in lives(1, lambda life: operations(life, "change")):
        life.killed("change", dice, number)


def test_a_revert_killed_before_any_operation_is_finished_by_the_next_one(lives: Lives) -> None:
    def count(life: Life) -> list[str]:
        assert life.run("change")["said"] == "done"
        return operations(life, "restore")

    for dice, life, number in lives(2, count):
        assert life.run("change")["said"] == "done"
        life.killed("restore", dice, number)
        for _ in range(dice.randint(0, 2)):  # the next ones may be killed as well, or come to their end
            life.run("restore", kill_before=dice.randint(1, life.most), is_torn=dice.random() < 0.5)


def test_a_trial_killed_before_any_operation_is_undone(lives: Lives) -> None:
    for dice, life, number in lives(3, lambda life: operations(life, "hold")):
        life.killed("hold", dice, number)


def test_a_trial_in_turns_killed_before_any_operation_is_undone(lives: Lives) -> None:
    """The machine is as it was found in one arm's turns, and in the other's it is not."""

    def in_turns(life: Life) -> Life:
        life.values = {path: value for path, value in life.values.items() if path in TURNED}
        return life

    for dice, life, number in lives(7, lambda life: operations(in_turns(life), "take turns")):
        in_turns(life).killed("take turns", dice, number)


def test_a_change_that_the_kernel_refuses_is_undone_wherever_it_is_killed(lives: Lives) -> None:
    """The last of all values is refused, so that the process itself takes the others back."""

    def refuse(life: Life) -> Life:
        del life.values[SWAPPINESS]
        life.values[SWAPPINESS] = "9999"  # the kernel takes 200 at most
        return life

    for dice, life, number in lives(4, lambda life: operations(refuse(life), "hold", "SettingError")):
        refuse(life).killed("hold", dice, number)


def test_files_for_the_next_start_killed_before_any_operation_are_undone(
    begin: Begin, pytestconfig: pytest.Config
) -> None:
    """Some are there already, from an earlier apply, and half of the processes are reverting."""
    dice = random.Random(6)  # noqa: S311 — reproducible
    is_etc_free = not any(map(os.path.lexists, FILES))
    most: dict[tuple[str, bool, bool], int] = {}
    for point in range(POINTS if pytestconfig.getoption("--all-kill-points") else SAMPLE):
        action = dice.choice(["change", "restore"])
        way = (action, dice.random() < 0.5, is_etc_free and point % IN_ETC == 0)
        if way not in most:
            most[way] = len(operations(persisting(begin, dice, *way), action))
        life = persisting(begin, dice, *way)
        life.killed(action, dice, dice.randint(1, most[way]))
        life.is_restored(by_command=life.root == Path("/"))  # which restores files of the real /etc alone


def persisting(begin: Begin, dice: random.Random, action: str, is_again: bool, is_in_etc: bool) -> Life:  # noqa: FBT001
    """Begin a life that is about to write files for the next start as well, or to take them away.

    They are in /etc, or in a directory that stands for it. ``is_again``: an earlier apply has written them.
    """
    life = begin(dice, has_scheduler=False)
    if not is_in_etc:
        life.root = life.home / "machine"
        (life.root / "etc/sysctl.d").mkdir(parents=True)
        life.places = places_of(life.root)
    for value in (1, 2) if is_again else (2,):
        life.files = {str(life.root / file.lstrip("/")): f"vm.swappiness = {value}\n" for file in FILES}
        if value == 1 or action == "restore":
            assert life.run("change")["said"] == "done", life.said
    return life


def places_of(root: Path) -> dict[str, tuple[Any, ...]]:
    """Return the places below /etc where such files are, with everything in them."""
    places = (root / "etc" / name for name in ("sysctl.d", "udev", "tmpfiles.d"))
    found = (path for place in places for path in (place, *place.rglob("*")))
    return {str(path): described(path) for path in found if path.exists()}


def described(path: Path) -> tuple[Any, ...]:
    """Return a file's content, mode and owner, or a directory's mode and owner."""
    status = path.stat()
    content = path.read_bytes() if path.is_file() else None
    return content, stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid


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
