"""The load generator on another host: sent with each run through ssh, and gone afterwards."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pgdyno.base.errors import RemoteHostError
from pgdyno.model.cells.cell import CellHost, await_greeting
from pgdyno.remote._load_program import ISSUES_LOAD, NOT_RUN, PROGRAM
from pgdyno.remote.channel import Channel, opened_channel
from pgdyno.remote.sent_program import program_text, start_command
from pgdyno.remote.ssh import ssh_command, ssh_environment

__all__ = [
    "DOES_NOT_RUN",
    "ISSUES_LOAD",
    "DriverSending",
    "driver_sending",
    "driver_version",
    "new_owner",
    "said_version",
]

LOAD_MODULES = ("_load_program",)
DOES_NOT_RUN = f"{PROGRAM} {NOT_RUN}"  # the host's last words then; the system's follow


@dataclass(frozen=True)
class DriverSending:
    """The start of a driver on another host: a command here, and the bytes that it is given first.

    It says ``greeting`` on a line of its own when everything has arrived; what follows is the driver's.
    """

    argv: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    first: bytes = field(repr=False)  # with a password
    greeting: str


def driver_sending(
    host: CellHost,
    ssh_config: Path | None,
    command: Sequence[str],
    environment: Mapping[str, str],
    lifetime_s: float,
    owner: str,
) -> DriverSending:
    """Return how to start the driver on a host, by its command here; it lives for so long at most.

    Its processes and its directory there have the owner in their names.
    """
    load, greeting = program_text(LOAD_MODULES), f"{owner}-{secrets.token_hex(16)}"
    argv = ssh_command(host, ssh_config, start_command(load, greeting, lifetime_s), is_alone=True)
    program, *arguments = command
    packed, checksum = _packed(Path(program))
    header = {
        "size": len(packed),
        "sha256": checksum,
        "arguments": arguments,
        "environment": dict(environment),
    }
    first = load + json.dumps(header).encode() + b"\n" + packed
    return DriverSending(argv, ssh_environment(), first, greeting)


def new_owner() -> str:
    """Return a name for the loads of one experiment on one host, which nobody else has."""
    return f"pgdyno-load-{secrets.token_hex(16)}"


def driver_version(program: Path, host: CellHost, ssh_config: Path | None, limit_s: float, owner: str) -> str:
    """Send the driver to a host, and let it say its version. Raises: RemoteHostError with its words."""
    sending = driver_sending(host, ssh_config, [str(program), "--version"], {}, limit_s, owner)
    return said_version(sending, program.name, limit_s)


def said_version(sending: DriverSending, name: str, limit_s: float) -> str:
    """Send a program that says its version, and is gone then. Raises: RemoteHostError with its words."""
    with opened_channel(sending.argv, sending.environment) as channel:
        channel.ends_s = time.monotonic() + limit_s
        watchdog = threading.Timer(limit_s, channel.stop)  # sending has no limit of its own
        watchdog.start()
        try:
            channel.send(sending.first)
            if not await_greeting(channel.line, sending.greeting):
                raise RemoteHostError(f"it says other things than {name} would")
            said = _version(channel, name)
            channel.finish()  # it has to be gone when the first load comes
            return said
        finally:
            watchdog.cancel()
            watchdog.join()


def _version(channel: Channel, name: str) -> str:
    """Return a program's version. Raises: RemoteHostError with a hint: ssh has done its part."""
    try:
        said = channel.line()
    except RemoteHostError as error:
        raise RemoteHostError(
            f"{name} does not say its version there",
            detail=error.detail or error.message,
            hint="pgdyno cell check looks at that host, and at the network between",
        ) from error
    if not said.startswith(name.encode()):
        raise RemoteHostError(f"{name} says other things there than its version")
    return said.decode(errors="replace")


@cache
def _packed(program: Path) -> tuple[bytes, str]:
    """Return a program, compressed, and its checksum; it is sent with each load, and stays the same."""
    packed = zlib.compress(program.read_bytes(), 1)
    return packed, hashlib.sha256(packed).hexdigest()
