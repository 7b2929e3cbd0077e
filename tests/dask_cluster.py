"""Dask on this machine as the guide has it: a scheduler and workers in processes of their own, not root's."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fix_servers import free_port, owned_directory, unprivileged_user, wait_until

NO_DASK = "the package distributed is not installed"
_ROOT = Path(__file__).parents[1]
_LOADED = "pgdyno.results.fleets.run_fleet"  # before the worker is there, not while it has a task
_READS_ALL = "+dac_read_search"  # root's Python may lie in root's home


class DaskProcesses:
    """Starts a scheduler and workers. ``home`` is a directory of their user's."""

    def __init__(self, home: Path) -> None:
        """Begin without any."""
        self.home, self.port = home, free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._started: list[subprocess.Popen[bytes]] = []

    def scheduler(self, *options: str, host: str = "127.0.0.1") -> subprocess.Popen[bytes]:
        """Start the scheduler, and wait until it listens."""
        started = self._start("scheduler", "--port", str(self.port), "--host", host, *options)
        wait_until(self._is_listening)
        return started

    def worker(
        self, machine: str, *options: str, host: str = "127.0.0.1", is_root: bool = False
    ) -> subprocess.Popen[bytes]:
        """Start a machine's worker. When it is killed, it is started again; it ends with its scheduler."""
        words = ("--nthreads", "1", "--resources", f"{machine}=1", "--preload", _LOADED)
        place = ("--local-directory", str(self.home / f"dask-{machine}"), "--host", host)
        return self._start("worker", self.address, *words, *place, *options, is_root=is_root)

    def await_workers(self, count: int) -> None:
        """Wait until workers are there with whom starts them again: one killed before that ends both."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            wait_until(lambda: [*client.run(_state, nanny=True).values()] == ["running"] * count, 100)

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program as the workers' user, with a PGDYNO_HOME of its own."""
        return subprocess.run(
            [*_as_user(), *argv],
            cwd=_ROOT,
            env={**os.environ, "PGDYNO_HOME": str(self.home / "controller")},
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )

    def close(self) -> None:
        """End all: workers at once, since tasks that nobody answers take a minute."""
        for one in reversed(self._started):
            one.kill()
            one.wait()

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _start(self, *words: str, is_root: bool = False) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "dask", *words, "--dashboard-address", "127.0.0.1:0"]
        user = [] if is_root else _as_user()
        self._started.append(
            subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", *user, *argv],
                cwd=_ROOT,
                env={**os.environ, "PGDYNO_HOME": str(self.home / "worker"), "PGDYNO_AS_BOOTED": "1"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        return self._started[-1]


def _state(dask_worker: Any) -> str:
    return str(dask_worker.status.name)


@contextmanager
def dask_processes() -> Iterator[DaskProcesses]:
    """Provide a scheduler and workers, which end at the end."""
    pytest.importorskip("distributed", reason=NO_DASK)
    home = owned_directory(Path(tempfile.gettempdir()), "pgdyno-dask-")
    processes = DaskProcesses(home)
    try:
        yield processes
    finally:
        processes.close()
        shutil.rmtree(home)


def _as_user() -> list[str]:
    """Return the words that let a program run as another user than root, if we are root."""
    if (user := unprivileged_user()) is None:
        return []
    rights = (f"--inh-caps={_READS_ALL}", f"--ambient-caps={_READS_ALL}")
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *rights]
