"""Kills processes that start children of one kind, at random moments of the child's first 300 ms.

Every second one is killed while the child binds itself to its parent. All that they leave become children of
this program, which prints as JSON how it went: see ``Report``.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NoReturn

from pgdyno.apply.writers import account as account_writer
from pgdyno.host.processes.running import output_of, run_logged
from pgdyno.load.process import Command, LoadProcess, wait_until_connected
from pgdyno.model.cells.cell import TypedAt
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.processes import children, read_process
from pgdyno.postgres.process.registry import embedded
from pgdyno.remote import _load_program
from pgdyno.remote.channel import opened_channel
from pgdyno.remote.forwarded_command import CarriedCommand, run_carried

FIRST_S = 0.3
BINDING_S = 0.01  # setpriv and the shell take three milliseconds
LIMIT_S = 60.0  # for what was left to end: a server shuts down
SET_SUBREAPER = 36  # linux/prctl.h
LONG = ["sleep", "1000"]
MAKEFILE = """\
all:
\t$(MAKE) one two
one:
\tsleep 1000; true
two:
\t@sh -c 'sleep 1000 & sleep 1000; true'
"""

Say = Callable[[], None]
"""Says that the child is about to be started."""


@dataclass
class Report:
    """How many processes were killed, and what was wrong after that.

    ``left``: the command lines of children that did not end. ``removed_under``: scratch directories that the
    next pgdyno removed while a process was at work in them. ``ended_by_next``: servers that it had to end.
    """

    killed: int = 0
    left: list[str] = field(default_factory=list)
    removed_under: list[str] = field(default_factory=list)
    ended_by_next: int = 0


class Lives:
    """Processes that start a child, each killed after its beginning."""

    def __init__(self, stack: ExitStack) -> None:
        """Make a place for their files, which the servers' account can reach."""
        self.place = Path(tempfile.mkdtemp(prefix="pgdyno-lives-"))
        stack.callback(shutil.rmtree, self.place)
        self.place.chmod(0o755)
        self.dice = random.Random(int(sys.argv[3]))  # noqa: S311 — reproducible
        self.workspace = workspace()
        self.stack = stack
        self.ours: set[int] = set()

    def server(self) -> Callable[[Say], None]:
        """Return a life with a scratch server, on a copy of the same data."""
        template = self.place / "template"
        initialise(embedded(), self.workspace.account, template)

        def life(say: Say) -> None:
            with self.workspace.scratch() as scratch, self.workspace.sockets(scratch) as sockets:
                subprocess.run(["cp", "--archive", str(template), str(scratch / "data")], check=True)
                server = Instance(embedded(), self.workspace.account, scratch / "data", sockets, 5432)
                say()
                server.start()
                signal.pause()

        return life

    def load(self) -> Callable[[Say], None]:
        """Return a life with pgbench on a server of ours, frozen at times."""
        scratch = self.stack.enter_context(self.workspace.scratch())
        sockets = self.stack.enter_context(self.workspace.sockets(scratch))
        initialise(embedded(), self.workspace.account, scratch / "data")
        server = Instance(embedded(), self.workspace.account, scratch / "data", sockets, 5432)
        self.stack.enter_context(server.running(is_immediate=True))
        argv = [embedded().program("pgbench"), f"--host={sockets}", "--username=pgdyno"]
        subprocess.run(
            [*server.account.run_as(argv), "--initialize", "--quiet", "postgres"],
            check=True,
            capture_output=True,
        )
        logs = self.place / "logs"
        logs.mkdir()
        server.account.own(logs)
        select = (*argv, "--no-vacuum", "--select-only", "--time=1000", "--log", "postgres")

        def life(say: Say) -> None:
            log = logs / str(os.getpid())
            issuing = Command((*select, f"--log-prefix={log}"), signal.SIGTERM, server.account.environment())
            process = LoadProcess(issuing, server.account.command, log, self.place / "output")
            say()
            process.start()
            wait_until_connected(process, timeout_s=LIMIT_S)
            while process.is_running:
                process.freeze()
                time.sleep(0.005)
                process.thaw()
                time.sleep(0.005)

        return life

    def build(self) -> Callable[[Say], None]:
        """Return a life with make, its children and theirs; or with one program of a build."""
        (self.place / "Makefile").write_text(MAKEFILE)
        argv = self.workspace.account.run_as(["make", "-j2"])

        def life(say: Say) -> None:
            is_whole = self.dice.random() < 0.5
            say()
            if is_whole:
                run_logged(argv, cwd=self.place, log=self.place / "log", limit_s=1000, watch=lambda: None)
            output_of(LONG, self.workspace.account.run_as)

        return life

    def remote(self) -> Callable[[Say], None]:
        """Return a life with a pgdyno for another machine, ssh to another one, or a load for another one."""
        tempfile.tempdir = str(self.place)
        words = ("bench", "pgbench-select", "--embedded", "--budget", "10m")
        carried = CarriedCommand(words, TypedAt("hosts.toml", "ssh there pgdyno")).line()
        silence = os.open(os.devnull, os.O_WRONLY)
        program = Path(shutil.which(LONG[0]) or LONG[0])

        def run_for_another(say: Say) -> None:
            reading, writing = os.pipe()
            os.write(writing, carried)
            say()
            run_carried(reading, silence, silence)

        def reach_another(say: Say) -> None:
            say()
            with opened_channel(LONG, os.environ):
                signal.pause()

        def load_for_another(say: Say) -> None:
            say()
            _load_program.run(program, {"arguments": LONG[1:], "environment": {}})

        def life(say: Say) -> None:
            self.dice.choice([run_for_another, reach_another, load_for_another])(say)

        return life

    def writer(self) -> Callable[[Say], None]:
        """Return a life with a program that changes the machine."""

        def life(say: Say) -> None:
            say()
            account_writer._run(LONG, ())

        return life

    def kill(self, life: Callable[[Say], None], report: Report) -> None:
        """Let a process live and be killed, and see what it has left."""
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            _live(life, writing)
        os.close(writing)
        assert os.read(reading, 1), "it ended before it started a child"
        os.close(reading)
        time.sleep(self.dice.uniform(0, BINDING_S if report.killed % 2 else FIRST_S))
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it ended by itself"
        report.killed += 1
        if self.dice.random() < 0.5:
            report.ended_by_next += self.clear()
            report.removed_under += [words for words in map(words_of, self.left()) if self.is_removed(words)]
        deadline_s = time.monotonic() + LIMIT_S
        while (left := self.left()) and time.monotonic() < deadline_s:
            time.sleep(0.005)
        report.left += map(words_of, left)
        for one in left:
            os.kill(one, signal.SIGKILL)
        while self.left():
            time.sleep(0.005)
        self.clear()

    def clear(self) -> int:
        """Do as the next pgdyno does; return the number of servers that it had to end."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            self.workspace.remove_orphans()
        return len(said)

    def left(self) -> list[int]:
        """Return our children, but for those that are to be there; those that have ended are waited for."""
        for pid in set(children(os.getpid())) - self.ours:
            os.waitpid(pid, os.WNOHANG)
        return sorted(set(children(os.getpid())) - self.ours)

    def is_removed(self, words: str) -> bool:
        """Whether a command line names a scratch directory that is not there."""
        directory = self.workspace.root / "scratch"
        named = re.findall(rf"{re.escape(str(directory))}/[^/ ]+", words)
        return not all(map(os.path.exists, named))


def _live(life: Callable[[Say], None], writing: int) -> NoReturn:
    try:
        life(lambda: os.close(writing) if os.write(writing, b"x") else None)
    finally:
        os._exit(1)


def words_of(pid: int) -> str:
    """Return a process's command line; nothing if it has ended."""
    return (read_process(pid, "cmdline") or "").replace("\0", " ").strip()


def main(kind: str, kills: int) -> None:
    """Kill processes with one kind of child."""
    ctypes.CDLL(None).prctl(SET_SUBREAPER, 1)
    report = Report()
    with ExitStack() as stack:
        lives = Lives(stack)
        life = getattr(lives, kind)()
        lives.ours = set(children(os.getpid()))
        for _ in range(kills):
            lives.kill(life, report)
    sys.stdout.write(json.dumps(asdict(report)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
