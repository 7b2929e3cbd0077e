"""Restart a server with the user's own command or with pg_ctl, and know whether it came up."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pgdyno.journal.query import Connect, run
from pgdyno.model.errors import ConnectionFailedError, ServerStartError, UsageError

DEFAULT_LIMIT_S = 120.0  # a shutdown checkpoint of a large, busy server takes tens of seconds
_POLL_S = 0.1
_OUTPUT_BYTES = 2000


@dataclass(frozen=True)
class CommandRestarter:
    """Runs a command, without a shell, and waits until a server that started since takes connections."""

    command: tuple[str, ...]
    connect: Connect
    limit_s: float = DEFAULT_LIMIT_S

    def restart(self) -> None:
        """Restart the server, or start it if it is down.

        Raises: ServerStartError with what the command said, if the server is not up within the limit.
        """
        before = self._started_at()
        deadline_s = time.monotonic() + self.limit_s
        self._run()
        while (started := self._started_at()) is None or started == before:
            if time.monotonic() > deadline_s:
                raise ServerStartError(
                    f"the server was not back within {self.limit_s:.0f} s of its restart",
                    detail="the old server still runs" if started else "it takes no connections",
                    hint="the server's own log says why",
                )
            time.sleep(_POLL_S)

    def _run(self) -> None:
        # Into a file, not a pipe: a server may keep its starter's output open for ever.
        with tempfile.TemporaryFile() as output:
            try:
                done = subprocess.run(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=self.limit_s,
                    check=False,
                    start_new_session=True,  # Ctrl-C must not stop a restart half-way
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
            said = output.read().decode(errors="replace").strip()
        if done.returncode != 0:
            raise ServerStartError(
                f'the restart command "{self.command[0]}" failed with status {done.returncode}',
                detail=said or None,
            )

    def _started_at(self) -> datetime | None:
        """Return when the running server started; None if it takes no connections."""
        try:
            with self.connect() as connection:
                started = run(connection, "SELECT pg_catalog.pg_postmaster_start_time()")[0][0]
        except ConnectionFailedError:
            return None
        assert isinstance(started, datetime)  # noqa: S101 — the function's declared type
        return started


def command_restarter(
    command: Sequence[str], connect: Connect, *, limit_s: float = DEFAULT_LIMIT_S
) -> CommandRestarter:
    """Return a restarter for the user's command. Raises: UsageError if the command is empty."""
    if not command:
        raise UsageError(
            "the restart command is empty",
            hint="for example --restart-command 'systemctl restart postgresql'",
        )
    return CommandRestarter(tuple(command), connect, limit_s)


def pg_ctl_restarter(
    bin_directory: Path,
    data_directory: Path,
    log_file: Path,
    connect: Connect,
    *,
    limit_s: float = DEFAULT_LIMIT_S,
) -> CommandRestarter:
    """Return a restarter for a server that pgdyno manages; pg_ctl runs as the data directory's owner."""
    command = [
        str(bin_directory / "pg_ctl"), "restart", "-D", str(data_directory), "-m", "fast",
        "-w", "-t", str(round(limit_s)), "-l", str(log_file),
    ]  # fmt: skip
    return CommandRestarter((*_as_owner(data_directory), *command), connect, limit_s)


def _as_owner(data_directory: Path) -> tuple[str, ...]:
    """Drop root's privileges: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return ()
    owner = data_directory.stat()
    return ("setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--init-groups", "--")
