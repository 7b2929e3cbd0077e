"""pgdyno with its modules loaded, for the hundreds of commands that tests run.

A command that measures spends a second of CPU time on loading its modules. One process loads them once and
forks for each command: a process of its own, with the arguments, environment, directory and output that were
asked for, which ends as any interpreter does.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NoReturn

import pgdyno
from pgdyno.cli.main import main

_PROGRAMS = (".__main__", "_program", ".enter_group")  # loading these would run them
_READ_AT_START = ("PYTHON", "LC_", "LANG", "OPENBLAS_")  # by the interpreter or a library: no fork sees these


class PreloadedPgdyno:
    """A process that has loaded pgdyno, and forks for each command."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Start it with an environment, of which commands see what is read at an interpreter's start."""
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.preloaded", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).parents[1],
                env=dict(environment),
            )
        self._started_with = dict(environment)
        atexit.register(self.close)

    def close(self) -> None:
        """End the process; commands that still run go on."""
        self._ours.close()
        self._process.wait()

    def can_run(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork would see all that the environment asks for."""
        names = {name for name in {*environment, *self._started_with} if name.startswith(_READ_AT_START)}
        return all(environment.get(name) == self._started_with.get(name) for name in names)

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run one command. Raises: subprocess.TimeoutExpired, after the command was killed."""
        asked = {"argv": arguments, "environ": dict(environment), "cwd": str(Path.cwd())}
        with TemporaryFile() as question, TemporaryFile() as out, TemporaryFile() as err:
            question.write(json.dumps(asked).encode())
            question.flush()
            code = self._answer([question.fileno(), out.fileno(), err.fileno()], arguments, timeout_s)
            said = [_text(file) for file in (out, err)]
            return subprocess.CompletedProcess(list(arguments), code, *said)

    def _answer(self, files: list[int], arguments: Sequence[str], timeout_s: float) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                socket.send_fds(self._ours, [b"run"], [*files, theirs.fileno()])
            pid = int(ours.recv(16))
            ours.settimeout(timeout_s)
            try:
                return os.waitstatus_to_exitcode(int(ours.recv(16)))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(arguments), timeout_s) from None


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


def _serve(channel: socket.socket) -> None:
    """Fork for each command that is asked for. Returns in the forks alone, which are to run it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest and for commands
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who waits for a command is a fork of its own
    gc.freeze()
    while True:
        _, files, _, _ = socket.recv_fds(channel, 8, 4)
        if not files:
            os._exit(0)
        if os.fork() == 0:
            channel.close()
            _wait_for_command(files)
            return
        for file in files:
            os.close(file)


def _wait_for_command(files: list[int]) -> None:
    """Fork once more, and report that process's id and how it ends. Returns in the process itself."""
    question, out, err, answer = files
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        os.write(answer, b"%d" % pid)
        os.write(answer, b"%d" % os.waitpid(pid, 0)[1])
        os._exit(0)
    os.close(answer)
    _become(question, out, err)


def _become(question: int, out: int, err: int) -> None:
    """Take on the arguments, environment, directory and output of one command."""
    with os.fdopen(question, "rb") as file:
        file.seek(0)
        asked = json.load(file)
    for file_number, place in ((out, 1), (err, 2)):
        os.dup2(file_number, place)
        os.close(file_number)
    os.environ.clear()
    os.environ.update(asked["environ"])
    os.chdir(asked["cwd"])
    sys.argv = [sys.argv[0], *asked["argv"]]
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _load_all() -> None:
    for module in pkgutil.walk_packages(pgdyno.__path__, "pgdyno."):
        if not module.name.endswith(_PROGRAMS):
            with suppress(ImportError):  # of an extra that is not installed: the command itself says so
                importlib.import_module(module.name)


def run() -> NoReturn:
    """Load pgdyno and serve; in each fork, run its command."""
    _load_all()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    main()
    sys.exit()


if __name__ == "__main__":
    run()
