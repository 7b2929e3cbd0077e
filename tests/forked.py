"""Commands of pgdyno in forks of the process that has loaded it, for tests that watch or end them.

They are waited for as those of subprocess are. Others are run by ``pgdyno`` of fix_home.py.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any

from tests import fix_home

_STARTING = Lock()  # several may begin at once


class Forked:
    """One command: see preloaded.py, which tells its process id and how it has ended."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], out: IO[Any], err: IO[Any]
    ) -> None:
        """Start it."""
        with _STARTING:
            preloaded = fix_home._preloaded()
        assert preloaded.can_run(environment), "some test has changed what an interpreter reads at its start"
        self._answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asked = {"argv": list(arguments), "environ": dict(environment), "cwd": str(Path.cwd())}
        with theirs, TemporaryFile() as question:
            question.write(json.dumps(asked).encode())
            question.flush()
            files = [question.fileno(), out.fileno(), err.fileno(), theirs.fileno()]
            socket.send_fds(preloaded._ours, [b"run"], files)
        self.pid = int(self._answers.recv(16))
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self._code_within(0)

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for its end and return the exit code. Raises: subprocess.TimeoutExpired."""
        code = self._code_within(timeout_s)
        if code is None:
            raise subprocess.TimeoutExpired("pgdyno", timeout_s or 0.0)
        return code

    def terminate(self) -> None:
        """Ask it to end; nothing happens if it has ended."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once; nothing happens if it has ended."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _code_within(self, timeout_s: float | None) -> int | None:
        if self._code is None and select.select([self._answers], [], [], timeout_s)[0]:
            self._code = os.waitstatus_to_exitcode(int(self._answers.recv(16)))
            self._answers.close()
        return self._code
