"""A command of pgdyno against a hostile server, and what became of it.

Commands of pgdyno are forked from a process that has loaded it; the memory that this takes counts as theirs.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from tests.forked import Forked
from tests.hostile.behaviours import Case
from tests.hostile.peer import Peer

LIMIT_S = 120.0  # a statement may take 15 s, and what was begun has to be undone after that
LIMIT_BYTES = 512 << 20  # a third of it is what apply takes without any attack
_POLL_S = 0.02
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_ENDS = {0, 1, 2, 3, 4}
_UNFORESEEN = "PGD-900"


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    command: str
    case: Case
    has_acted: bool
    exit_code: int | None  # None: it was ended after the limit
    wall_s: float
    rss_bytes: int
    out: str
    err: str

    def faults(self) -> list[str]:
        """Return what it should not have done."""
        found = []
        if self.exit_code is None:
            found.append("it did not end within its limit of time or memory")
        elif self.exit_code not in _ENDS:
            found.append(f"exit code {self.exit_code}")
        elif self.exit_code == 0 and self.has_acted and not self.case.may_end_well:
            found.append("it ended as if nothing had been")
        elif self.exit_code and not self.err.strip():
            found.append("it said nothing")
        if self.rss_bytes > LIMIT_BYTES:
            found.append(f"{self.rss_bytes >> 20} MB of memory")
        return found + self._faults_of_words()

    def _faults_of_words(self) -> list[str]:
        found = [text for text in ("Traceback", "MemoryError", _UNFORESEEN) if text in self.err]
        for name, text in (("stdout", self.out), ("stderr", self.err)):
            if control := _CONTROL.search(text):
                found.append(f"control character {control[0]!a} in {name}")
        if self.exit_code == 3 and "pgdyno revert" not in self.err:
            found.append("something is still changed, and it does not say how to undo it")
        return found


def attack(
    name: str,
    arguments: Sequence[str],
    case: Case,
    upstream: Path,
    environment: Mapping[str, str],
    *,
    limit_s: float = LIMIT_S,
    program: Sequence[str] = (),
) -> Outcome:
    """Run a command of pgdyno, or a program, against the peer.

    ``{dsn}`` in its arguments is where that listens.
    """
    with Peer(upstream, case.make) as peer, TemporaryFile() as out, TemporaryFile() as err:
        began = time.monotonic()
        argv = [text.replace("{dsn}", peer.dsn) for text in arguments]
        usual = {name: value for name, value in os.environ.items() if name != "PGCONNECT_TIMEOUT"}
        exit_code, rss_bytes = _watch(
            _start(program, argv, {**usual, **environment}, out, err), began + limit_s
        )
        wall_s = time.monotonic() - began
        return Outcome(name, case, peer.has_acted, exit_code, wall_s, rss_bytes, _text(out), _text(err))


def _start(
    program: Sequence[str],
    argv: Sequence[str],
    environment: Mapping[str, str],
    out: IO[bytes],
    err: IO[bytes],
) -> subprocess.Popen[bytes] | Forked:
    if not program:
        return Forked(argv, environment, out, err)
    return subprocess.Popen(
        [*program, *argv], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
    )


def _watch(process: subprocess.Popen[bytes] | Forked, deadline_s: float) -> tuple[int | None, int]:
    """Return the exit code, and the most memory; a process that takes too much of anything is ended."""
    peak = 0
    while (code := process.poll()) is None:
        peak = max(peak, _peak_bytes(process.pid))
        if time.monotonic() > deadline_s or peak > 2 * LIMIT_BYTES:
            process.kill()
            process.wait()
            return None, peak
        time.sleep(_POLL_S)
    return code, peak


def _peak_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):  # it has just ended, as it has where nothing is found
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) << 10 if found else 0


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "surrogateescape")
