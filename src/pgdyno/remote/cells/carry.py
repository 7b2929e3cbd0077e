"""A command carried to the server's host of a cell, where an installed pgdyno of this version runs it."""

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
from pgdyno.remote.carried_command import ALIVE, ALIVE_S, INTERRUPT, SILENCE_S, CarriedCommand
from pgdyno.remote.cells.ssh_words import explained
from pgdyno.remote.channel import Channel, opened_channel
from pgdyno.remote.ssh import by_hand, ssh_command, ssh_environment

_BEGINNING_S = 60.0  # arbitrary: a login, and Python with pgdyno's modules from a cold disk
_LOST = 255  # ssh's own; pgdyno has no such exit code
_NOT_FOUND, _NOT_RUN, _USAGE = "status 127", "status 126", "status 2"  # as shells and pgdyno end


def carry(cell: CellHosts, command: CarriedCommand, say: Callable[[bool, bytes], None]) -> int:
    """Run a command on the server's host, and return its exit code. ``say`` is given parts of its output.

    An interruption is passed on, and the command's end waited for; a second one ends the waiting.
    Raises: RemoteHostError if it cannot be run there, or the connection is lost.
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
        with _signs_of_life(channel):
            _hand_on(channel, say)
        status = channel.status()
    if status is None or status == _LOST:
        raise RemoteHostError(
            f"the connection to {cell.server.name} was lost",
            detail=f"the command there is interrupted within {numbers.duration(SILENCE_S)}, and gives back "
            "what it has changed",
            hint=f"then see what is there: pgdyno status --cell {shlex.quote(command.typed_at.cell)}",
        )
    return status


def _greeted(channel: Channel, greeting: str) -> str:
    """Return the version of the pgdyno that greets. Raises: RemoteHostError if none does."""
    if not await_greeting(channel.line, greeting):
        raise RemoteHostError("it says other things than pgdyno would")
    return channel.line().decode(errors="replace").strip()


def _hand_on(channel: Channel, say: Callable[[bool, bytes], None]) -> None:
    try:
        for is_error, part in channel.parts():
            say(is_error, part)
    except KeyboardInterrupt:
        channel.send(INTERRUPT)
        for is_error, part in channel.parts():
            say(is_error, part)


@contextmanager
def _signs_of_life(channel: Channel) -> Iterator[None]:
    """Tell the other side at times that we are there, also while our own output is held up."""
    is_over = threading.Event()

    def tell() -> None:
        while not is_over.wait(ALIVE_S):
            channel.send(ALIVE)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _require_same_version(cell: CellHosts, theirs: str) -> None:
    if theirs != __version__:
        raise RemoteHostError(
            f"{cell.server.name} has pgdyno {theirs[:40]}, and this is {__version__}",
            hint="install the same version on both, or name another one there: "
            f'pgdyno = "/…/pgdyno" in [hosts.{cell.server.name}]',
        )


def _not_begun(cell: CellHosts, error: RemoteHostError) -> RemoteHostError:
    """Return the error of a pgdyno that does not begin on the server's host."""
    name, said = cell.server.name, (error.detail or "").strip().splitlines()[-1:]
    key = f'pgdyno = "/…/pgdyno" in [hosts.{name}]'
    why = {
        _NOT_FOUND: (
            f"there is no pgdyno on {name}",
            f"install pgdyno {__version__} there, or say where it is: {key}",
        ),
        _NOT_RUN: (
            f"the user of the login may not run pgdyno on {name}",
            f"let the user run it, name another one ({key}), or log in as another user (ssh = there)",
        ),
        _USAGE: (
            f"pgdyno on {name} is of another version, which takes no commands from here",
            f"install pgdyno {__version__} there, or name another one: {key}",
        ),
    }
    for status, (message, hint) in why.items():
        if error.message == f"ssh ended with {status}":
            return RemoteHostError(message, detail=said[0] if said else None, hint=hint)
    reaching = by_hand(cell.server, cell.ssh_config)
    trouble = explained(error.message, error.detail, reaching, has_begun=False)
    return RemoteHostError(f"{name}: {trouble.said}", hint=error.hint or trouble.next_step)
