"""A running generator: started, frozen, thawed and stopped as one process group."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.base.errors import GeneratorError, GeneratorFailedError, StorageError
from pgdyno.load.transaction_log import TransactionLog

Wrap = Callable[[Sequence[str]], list[str]]
"""Wraps a command line to run as another user, on given CPUs, and to end with pgdyno."""
_STOP_TIMEOUT_S = 15.0
_CHARACTERS = 800
_ERROR = re.compile(r"^[\w./-]+: (?:error|fatal):", re.MULTILINE)
_END_BYTES = 64 << 10  # enough for a driver's error with a whole statement


@dataclass(frozen=True)
class Command:
    """A command line. ``stop_signal`` ends the program cleanly, with its log complete.

    ``environment`` is its complete environment: nothing is inherited from pgdyno.
    ``clean_statuses`` are the exit statuses of a clean end; −N means killed by signal N.
    """

    argv: tuple[str, ...]
    stop_signal: signal.Signals
    environment: Mapping[str, str] = field(default_factory=dict)
    clean_statuses: tuple[int, ...] = (0,)


@dataclass
class LoadProcess:
    """One running generator. ``freeze`` and ``thaw`` stop and continue its whole process group."""

    command: Command
    wrap: Wrap
    log_prefix: Path
    output_file: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _status: int | None = field(default=None, init=False)  # set by stop

    @property
    def transactions(self) -> TransactionLog:
        """The log that this process writes."""
        return TransactionLog(self.log_prefix)

    @property
    def is_running(self) -> bool:
        """Whether the generator was started and has not exited."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id. Raises: GeneratorFailedError if the generator has exited."""
        self.require_running()
        assert self._process is not None  # noqa: S101 — require_running has checked it
        return self._process.pid

    def cpu_us(self) -> float | None:
        """Return the CPU time of all threads so far, in µs; None if the generator does not run."""
        if self._process is None or self._process.poll() is not None:
            return None
        used_ns = [_schedstat_ns(task) for task in Path(f"/proc/{self._process.pid}/task").iterdir()]
        return sum(used_ns) / 1000

    def start(self) -> None:
        """Start issuing load."""
        with self.output_file.open("wb") as output:
            self._process = subprocess.Popen(
                self.wrap(self.command.argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(self.command.environment),
                start_new_session=True,
            )

    def freeze(self) -> None:
        """Stop the process group at once; its open transactions stay open."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue the process group."""
        self._signal(signal.SIGCONT)

    def require_running(self) -> None:
        """Raise GeneratorFailedError, with the end of the generator's output, if it has exited."""
        if not self.is_running:
            raise failure(self.command, output_end(self.output_file))

    def stop(self) -> None:
        """End the run cleanly, so that the log is complete; kill it after a timeout."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._signal(self.command.stop_signal)
            self.thaw()
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._process.wait()
        self._status = self._process.returncode
        self._process = None

    def require_clean_end(self) -> None:
        """Raise GeneratorFailedError if the stopped run had failed: clients aborted, or it had to be killed.

        pgbench continues if some clients abort, and reports that only in its exit status.
        """
        if self._status not in self.command.clean_statuses:
            name = Path(self.command.argv[0]).name
            raise GeneratorFailedError(
                f"{name} did not end cleanly: its exit status is {self._status}",
                detail=last_words(output_end(self.output_file)),
                hint="clients may have stopped early: the count is not the server's throughput",
            )

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, number)


def _schedstat_ns(task: Path) -> int:
    """Return a thread's CPU time in ns; 0 if it has ended since it was listed."""
    try:
        return int((task / "schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def run_to_end(command: Command, wrap: Wrap, output_file: Path, *, timeout_s: float) -> None:
    """Run a generator to load data, and wait for its end.

    Raises: GeneratorFailedError with the end of its output, StorageError for a full disk.
    """
    with output_file.open("wb") as output:
        process = subprocess.Popen(
            wrap(command.argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(command.environment),
            start_new_session=True,
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise GeneratorFailedError(
                f"{Path(command.argv[0]).name} did not finish loading within {timeout_s:.0f} s"
            ) from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code != 0:
        raise failure(command, output_end(output_file))


def failure(command: Command, output: str) -> GeneratorError | StorageError:
    """Return the error for a failed generator, from its output."""
    name = Path(command.argv[0]).name
    tail = last_words(output) or "it printed nothing"
    if "No space left on device" in output:
        return StorageError(f"the disk filled up while {name} was writing", detail=tail)
    return GeneratorFailedError(f"{name} ended before it was stopped", detail=tail)


def wait_until_connected(process: LoadProcess, *, timeout_s: float) -> None:
    """Wait until the generator has logged its first transaction.

    Raises: GeneratorFailedError if it exits, or logs nothing within the limit.
    """
    deadline = time.monotonic() + timeout_s
    log = process.transactions
    while not log.read_new():
        process.require_running()
        if time.monotonic() > deadline:
            raise GeneratorFailedError(
                f"{Path(process.command.argv[0]).name} completed no transaction within {timeout_s:.0f} s",
                detail=last_words(output_end(process.output_file)),
            )
        time.sleep(0.02)


def output_end(file: Path) -> str:
    """Return the end of a generator's output."""
    with file.open("rb") as output:
        size_bytes = output.seek(0, os.SEEK_END)
        output.seek(max(0, size_bytes - _END_BYTES))
        return output.read(_END_BYTES).decode(errors="replace")


def last_words(output: str) -> str:
    """Return as much of the output as an error shows: from the program's first error on, else its end."""
    text = output.strip()
    error = _ERROR.search(text)
    return text[-_CHARACTERS:] if error is None else text[error.start() :][:_CHARACTERS]
