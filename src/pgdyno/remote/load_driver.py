"""Run the load generator on another host: it is sent through ssh for each run, and removed afterwards."""

from __future__ import annotations

import hashlib
import json
import re
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
from pgdyno.remote._sysbench_program import NOT_INSTALLED, SYSBENCH
from pgdyno.remote.channel import Channel, opened_channel
from pgdyno.remote.ssh import program_text, ssh_command, ssh_environment, start_command

__all__ = [
    "DOES_NOT_RUN",
    "ISSUES_LOAD",
    "NOT_INSTALLED",
    "SYSBENCH_DOES_NOT_RUN",
    "DriverSending",
    "driver_sending",
    "driver_version",
    "new_owner",
    "sent_version",
    "sysbench_sending",
    "sysbench_version",
]

LOAD_MODULES = ("_load_program",)
DOES_NOT_RUN = f"{PROGRAM} {NOT_RUN}"  # starts the remote program's last message; the system's error follows


@dataclass(frozen=True)
class DriverSending:
    """How to start a driver on another host: a local command, and the first bytes of its input.

    It prints ``greeting`` on a line when everything has arrived; all further output is the driver's.
    """

    argv: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    first: bytes = field(repr=False)  # contains a password
    greeting: str


def driver_sending(
    host: CellHost,
    ssh_config: Path | None,
    command: Sequence[str],
    environment: Mapping[str, str],
    lifetime_s: float,
    owner: str,
) -> DriverSending:
    """Return how to start the driver on a host. ``command`` is its local command line.

    It runs for ``lifetime_s`` at most. The names of its processes and its directory contain ``owner``.
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
    """Return a unique name for the loads of one experiment on one host."""
    return f"pgdyno-load-{secrets.token_hex(16)}"


def driver_version(program: Path, host: CellHost, ssh_config: Path | None, limit_s: float, owner: str) -> str:
    """Send the driver to a host; return the version it prints. Raises: RemoteHostError with its output."""
    sending = driver_sending(host, ssh_config, [str(program), "--version"], {}, limit_s, owner)
    return sent_version(sending, program.name, limit_s)


def sent_version(sending: DriverSending, name: str, limit_s: float) -> str:
    """Send a program that prints its version and exits. Raises: RemoteHostError with its output."""
    with opened_channel(sending.argv, sending.environment) as channel:
        channel.ends_s = time.monotonic() + limit_s
        watchdog = threading.Timer(limit_s, channel.stop)  # channel.send has no time limit
        watchdog.start()
        try:
            channel.send(sending.first)
            if not await_greeting(channel.line, sending.greeting):
                raise RemoteHostError(f"unexpected output instead of {name}'s")
            version = _version(channel, name)
            channel.finish()  # it must have exited before the first load starts
            return version
        finally:
            watchdog.cancel()
            watchdog.join()


def _version(channel: Channel, name: str) -> str:
    """Return a program's version. Raises: RemoteHostError, with a hint that does not concern ssh."""
    try:
        line = channel.line()
    except RemoteHostError as error:
        raise RemoteHostError(
            f"{name} does not print its version there",
            detail=error.detail or error.message,
            hint="pgdyno cell check examines that host and the network",
        ) from error
    if not line.startswith(name.encode()):
        raise RemoteHostError(f"{name} prints something other than its version there")
    return line.decode(errors="replace")


@cache
def _packed(program: Path) -> tuple[bytes, str]:
    """Return a program's compressed bytes and their checksum; cached, since it is sent for each load."""
    packed = zlib.compress(program.read_bytes(), 1)
    return packed, hashlib.sha256(packed).hexdigest()


SYSBENCH_MODULES = (*LOAD_MODULES, "_own_programs", "_sysbench_program")
SYSBENCH_DOES_NOT_RUN = f"{SYSBENCH} {NOT_RUN}"  # starts the remote program's last message
_VERSION = re.compile(rf"{SYSBENCH} [0-9][0-9A-Za-z.+~-]{{0,39}}", re.ASCII)  # it is shown in notes


def sysbench_sending(
    host: CellHost,
    ssh_config: Path | None,
    wrapper: str,
    environment: Mapping[str, str],
    lifetime_s: float,
    owner: str,
) -> DriverSending:
    """Return how to run a host's sysbench; the script ``wrapper`` wraps sysbench's own script.

    The other parameters are those of ``driver_sending``.
    """
    header = {"wrapper": wrapper, "environment": dict(environment)}
    return _sending(host, ssh_config, header, lifetime_s, owner)


def sysbench_version(host: CellHost, ssh_config: Path | None, limit_s: float, owner: str) -> str:
    """Return the name and version that a host's sysbench prints, without any suffix.

    Raises: RemoteHostError with its output, or for output other than a version.
    """
    sending = _sending(host, ssh_config, {"says_version": True}, limit_s, owner)
    found = _VERSION.match(sent_version(sending, SYSBENCH, limit_s))
    if found is None:
        raise RemoteHostError(f"{SYSBENCH} prints something other than its version there")
    return found[0]


def _sending(
    host: CellHost, ssh_config: Path | None, header: Mapping[str, object], lifetime_s: float, owner: str
) -> DriverSending:
    program, greeting = program_text(SYSBENCH_MODULES), f"{owner}-{secrets.token_hex(16)}"
    argv = ssh_command(host, ssh_config, start_command(program, greeting, lifetime_s), is_alone=True)
    first = program + json.dumps({"says_version": False, "host": host.name, **header}).encode() + b"\n"
    return DriverSending(argv, ssh_environment(), first, greeting)
