"""Reload a server's configuration, or restart it with the user's command, and verify the result.

A restart is never interrupted: Ctrl-C and SIGTERM take effect when the command has ended and the server is up
again or the timeout has expired.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString

from pgdyno.apply.session.query import Connect, Connection, value
from pgdyno.base.errors import ConnectionFailedError, ServerError, ServerStartError, UsageError

RESTART_LIMIT_S = 120.0  # a shutdown checkpoint of a large, busy server takes tens of seconds
_RESTART_POLL_S = 0.1
_OUTPUT_BYTES = 2000
_START_TIME: LiteralString = """
SELECT pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())::pg_catalog.float8
"""
_RELOAD_LIMIT_S = 15.0  # the postmaster reloads within milliseconds unless the machine is overloaded
_RELOAD_POLL_S = 0.02
_LOAD_TIME: LiteralString = """
SELECT pg_catalog.date_part('epoch', pg_catalog.pg_conf_load_time())::pg_catalog.float8
"""


@dataclass(frozen=True)
class CommandRestarter:
    """Runs a command, without a shell, and waits until a server started since then accepts connections.

    A server that ``connect`` rejects as a different one does not count.
    """

    command: tuple[str, ...]
    connect: Connect
    limit_s: float = RESTART_LIMIT_S

    def restart(self) -> None:
        """Restart the server, or start it if it is down.

        Raises: ServerStartError with the command's output, if the server is not up within the limit.
        """
        with _interrupts_deferred():
            before = self._started_at()
            deadline_s = time.monotonic() + self.limit_s
            self._run()
            while isinstance(now := self._started_at(), ConnectionFailedError) or now == before:
                if time.monotonic() > deadline_s:
                    raise ServerStartError(
                        f"the server was not up within {self.limit_s:.0f} s of its restart",
                        detail=_describe(now),
                        hint="see the server's log for the reason",
                    )
                time.sleep(_RESTART_POLL_S)

    def _run(self) -> None:
        # A file instead of a pipe: the server may keep the command's output open forever.
        with tempfile.TemporaryFile() as output:
            try:
                done = subprocess.run(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=self.limit_s,
                    check=False,
                    start_new_session=True,  # the terminal sends Ctrl-C to all processes of its session
                )
            except OSError as error:
                raise ServerStartError(
                    f'could not run the restart command "{self.command[0]}"', detail=error.strerror
                ) from error
            except subprocess.TimeoutExpired as error:
                raise ServerStartError(
                    f'the restart command "{self.command[0]}" did not end within {self.limit_s:.0f} s'
                ) from error
            output.seek(max(0, output.seek(0, os.SEEK_END) - _OUTPUT_BYTES))
            text = output.read().decode(errors="replace").strip()
        if done.returncode != 0:
            raise ServerStartError(
                f'the restart command "{self.command[0]}" failed with status {done.returncode}',
                detail=text or None,
            )

    def _started_at(self) -> float | ConnectionFailedError:
        try:
            with self.connect() as connection:
                return value(connection, _START_TIME, float)
        except ConnectionFailedError as error:
            return error


def _describe(state: float | ConnectionFailedError) -> str:
    return "the old server still runs" if isinstance(state, float) else f"{state.message}: {state.detail}"


def command_restarter(
    command: Sequence[str], connect: Connect, *, limit_s: float = RESTART_LIMIT_S
) -> CommandRestarter:
    """Return a restarter for the user's command. Raises: UsageError if the command is empty."""
    if not command:
        raise UsageError(
            "the restart command is empty",
            hint="for example --restart-command 'systemctl restart postgresql'",
        )
    return CommandRestarter(tuple(command), connect, limit_s)


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C, SIGTERM and SIGHUP until the end of the block, then raise KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are delivered to the main thread only
        return
    held_back: list[int] = []
    former = {
        number: signal.signal(number, lambda held, _frame: held_back.append(held))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if held_back:
        raise KeyboardInterrupt


def reload_and_wait(connection: Connection, connect: Connect) -> None:
    """Reload, and return when new sessions use the files' present contents.

    pg_reload_conf() only sends a signal. The postmaster records the time when it has loaded the files, and
    new backends inherit it: therefore each check uses a new connection.
    Raises: ServerError if the server does not load them, for example because a file cannot be parsed.
    """
    before = _loaded_at(connect)
    if not value(connection, "SELECT pg_catalog.pg_reload_conf()", bool):
        raise ServerError("the server could not reload its configuration")
    deadline_s = time.monotonic() + _RELOAD_LIMIT_S
    while _loaded_at(connect) == before:  # not <=: the clock may be set back
        if time.monotonic() > deadline_s:
            raise ServerError(
                f"the server did not load its configuration within {_RELOAD_LIMIT_S:.0f} s",
                hint="see its log for the reason, or SELECT * FROM pg_file_settings WHERE error IS NOT NULL",
            )
        time.sleep(_RELOAD_POLL_S)


def _loaded_at(connect: Connect) -> float:
    with connect() as connection:
        return value(connection, _LOAD_TIME, float)
