"""``pgdyno run insert-benchmark`` while it runs: what it says, and the server that it has started."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psycopg
import pytest
from tests.fix_servers import wait_until
from tests.forked import Forked

LIMIT_S = 120.0


@dataclass
class Running:
    """A run, its progress as it comes, and its scratch server."""

    process: Forked
    lines: queue.SimpleQueue[str | None]
    seen: str = ""
    known: set[int] = field(default_factory=set)  # every process that was found to belong to it

    def await_step(self, step: str) -> None:
        """Wait until the run says that this step begins."""
        deadline_s = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline_s:
            line = self.lines.get(timeout=LIMIT_S)
            if line is None:
                break
            self.seen += line
            if f"insert-benchmark-{step} on " in line:
                return
        pytest.fail(f"step {step} did not begin:\n{self.seen}")

    def end(self) -> str:
        """Wait for the run's end, which is to be a failure, and return what it has said."""
        assert self.process.wait(LIMIT_S) == 1, self.seen
        while (line := self.lines.get(timeout=LIMIT_S)) is not None:
            self.seen += line
        return self.seen

    def has_left_processes(self) -> bool:
        """Whether something of it still runs."""
        return any(Path(f"/proc/{pid}").exists() for pid in self.known)

    def postmaster(self) -> int:
        """Return the process id of the scratch server."""
        own = descendants(self.process.pid)
        self.known |= {*own}
        for pid in own:
            if "unix_socket_directories=" in command_line(pid):
                return pid
        pytest.fail("no server runs")

    def connect(self) -> psycopg.Connection:
        """Connect to the database that is worked on."""
        options = [one for one in command_line(self.postmaster()).split("\0") if "=" in one]
        settings = dict(one.split("=", 1) for one in options)
        return psycopg.connect(
            host=settings["unix_socket_directories"], port=int(settings["port"]), user="pgdyno",
            dbname="bench", autocommit=True,
        )  # fmt: skip

    def backend(self, query: str) -> int:
        """Wait for a backend whose latest query is such a one (LIKE) and return its process id."""
        found: list[int] = []
        with self.connect() as connection:

            def is_there() -> bool:
                rows = connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()",
                    (query,),
                )
                found.extend(pid for (pid,) in rows)
                return bool(found)

            wait_until(is_there)
        return found[0]


@contextmanager
def running(rows: str, *more: str, **environment: str) -> Iterator[Running]:
    """Run the benchmark with one client; nothing of it is left at the end."""
    argv = ["run", "insert-benchmark", "--embedded", "--clients", "1", "--rows", rows, "--blocks", "1", *more]
    reading, writing = os.pipe()
    with Path(os.devnull).open("wb") as nowhere, os.fdopen(writing, "wb") as said:
        process = Forked(argv, {**os.environ, **environment}, nowhere, said)
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(os.fdopen(reading), lines), daemon=True)
    reader.start()
    try:
        yield Running(process, lines)
    finally:
        process.terminate()
        process.wait(LIMIT_S)
        reader.join(LIMIT_S)


def _read(said: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    with said:
        for line in said:
            lines.put(line)
    lines.put(None)


def descendants(pid: int) -> list[int]:
    """Return the process ids of all children, theirs included; none of a process that has ended."""
    found = []
    for task in _tasks(pid):
        try:
            children = [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []


def command_line(pid: int) -> str:
    """Return the arguments of a process, with zero bytes between; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
