"""Forward a command to the server's host of a cell; an installed pgdyno of the same version runs it there."""

from __future__ import annotations

import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pgdyno import __version__
from pgdyno.base import numbers
from pgdyno.base.errors import RemoteHostError
from pgdyno.model.cells.cell import CellHosts, await_greeting
from pgdyno.remote.cells.ssh_errors import explained
from pgdyno.remote.channel import Channel, opened_channel
from pgdyno.remote.forwarded_command import ALIVE, ALIVE_S, INTERRUPT, SILENCE_S, CarriedCommand
from pgdyno.remote.ssh import by_hand, ssh_command, ssh_environment

_BEGINNING_S = 60.0  # arbitrary: a login, and Python with pgdyno's modules from a cold disk
_LOST = 255  # ssh's own exit code; pgdyno never uses it
_NOT_FOUND, _NOT_RUN, _USAGE = "status 127", "status 126", "status 2"  # of shells and of pgdyno


def carry(cell: CellHosts, command: CarriedCommand, on_output: Callable[[bool, bytes], None]) -> int:
    """Run a command on the server's host, and return its exit code.

    ``on_output`` receives (is from stderr, bytes). An interruption is forwarded, and the command's exit is
    awaited; a second interruption ends the waiting. Raises: RemoteHostError if the command cannot run there,
    or the connection is lost.
    """
    greeting, program = f"pgdyno-carried-{secrets.token_hex(16)}", cell.server.pgdyno or "pgdyno"
    started = [program, "cell", "carried", greeting]
    argv = ssh_command(cell.server, cell.ssh_config, started, is_alone=True)
    with opened_channel(argv, ssh_environment()) as channel:
        channel.ends_s = time.monotonic() + _BEGINNING_S
        try:
            theirs = _greeted(channel, greeting)
        except RemoteHostError as error:
            raise _not_begun(cell, error) from error
        _require_same_version(cell, theirs)
        channel.send(command.line())
        with _keepalives(channel):
            _relay(channel, on_output)
        status = channel.status()
    if status is None or status == _LOST:
        raise RemoteHostError(
            f"the connection to {cell.server.name} was lost",
            detail=f"the command there is interrupted within {numbers.duration(SILENCE_S)}, and undoes its "
            "changes",
            hint=f"then check what remains: pgdyno status --cell {shlex.quote(command.typed_at.cell)}",
        )
    return status


def _greeted(channel: Channel, greeting: str) -> str:
    """Return the version of the pgdyno that greets. Raises: RemoteHostError if none does."""
    if not await_greeting(channel.line, greeting):
        raise RemoteHostError("unexpected output instead of pgdyno's")
    return channel.line().decode(errors="replace").strip()


def _relay(channel: Channel, on_output: Callable[[bool, bytes], None]) -> None:
    try:
        for is_error, part in channel.parts():
            on_output(is_error, part)
    except KeyboardInterrupt:
        channel.send(INTERRUPT)
        for is_error, part in channel.parts():
            on_output(is_error, part)


@contextmanager
def _keepalives(channel: Channel) -> Iterator[None]:
    """Send keepalives to the other side, even while local output is blocked."""
    is_over = threading.Event()

    def send_keepalives() -> None:
        while not is_over.wait(ALIVE_S):
            channel.send(ALIVE)

    thread = threading.Thread(target=send_keepalives, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _require_same_version(cell: CellHosts, theirs: str) -> None:
    if theirs != __version__:
        raise RemoteHostError(
            f"{cell.server.name} has pgdyno {theirs[:40]}, but this is {__version__}",
            hint="install the same version on both hosts, or name another installation there: "
            f'pgdyno = "/…/pgdyno" in [hosts.{cell.server.name}]',
        )


def _not_begun(cell: CellHosts, error: RemoteHostError) -> RemoteHostError:
    """Return the error for a pgdyno that does not start on the server's host."""
    name, last_line = cell.server.name, (error.detail or "").strip().splitlines()[-1:]
    key = f'pgdyno = "/…/pgdyno" in [hosts.{name}]'
    why = {
        _NOT_FOUND: (
            f"pgdyno not found on {name}",
            f"install pgdyno {__version__} there, or give its path: {key}",
        ),
        _NOT_RUN: (
            f"the login user may not run pgdyno on {name}",
            (
                f"permit the user to run it, name another installation ({key}), or log in as another user "
                "(ssh = there)"
            ),
        ),
        _USAGE: (
            f"pgdyno on {name} has a different version, which does not accept commands from here",
            f"install pgdyno {__version__} there, or name another installation: {key}",
        ),
    }
    for status, (message, hint) in why.items():
        if error.message == f"ssh exited with {status}":
            return RemoteHostError(message, detail=last_line[0] if last_line else None, hint=hint)
    reaching = by_hand(cell.server, cell.ssh_config)
    trouble = explained(error.message, error.detail, reaching, has_begun=False)
    return RemoteHostError(f"{name}: {trouble.said}", hint=error.hint or trouble.next_step)
