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
from pathlib import Path

from pgdyno.model.cells.cell import CellHost
from pgdyno.model.errors import RemoteHostError
from pgdyno.remote.channel import opened_channel
from pgdyno.remote.runner import Runner
from pgdyno.remote.sent_program import program_text, start_command
from pgdyno.remote.ssh import ssh_command, ssh_environment

LOAD_MODULES = ("_load_program",)


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
    program: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    lifetime_s: float,
) -> DriverSending:
    """Return how to start the driver on a host, where it lives for so long at most."""
    load, greeting = program_text(LOAD_MODULES), f"pgdyno-load-{secrets.token_hex(16)}"
    argv = ssh_command(host, ssh_config, start_command(load, greeting, lifetime_s))
    return DriverSending(argv, ssh_environment(), load + _packed(program, arguments, environment), greeting)


def require_driver_runs(host: CellHost, ssh_config: Path | None, program: Path, limit_s: float) -> None:
    """Send the driver to a host, and let it say its version. Raises: RemoteHostError with its words."""
    sending = driver_sending(host, ssh_config, program, ["--version"], {}, limit_s)
    with opened_channel(sending.argv, sending.environment) as channel:
        channel.ends_s = time.monotonic() + limit_s
        watchdog = threading.Timer(limit_s, channel.stop)  # sending has no limit of its own
        watchdog.start()
        try:
            channel.send(sending.first)
            Runner(channel, sending.greeting).begin()
            if not channel.line().startswith(program.name.encode()):
                raise RemoteHostError(f"{program.name} says other things there than its version")
        finally:
            watchdog.cancel()
            watchdog.join()


def _packed(program: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> bytes:
    packed = zlib.compress(program.read_bytes(), 1)
    header = {
        "size": len(packed),
        "sha256": hashlib.sha256(packed).hexdigest(),
        "arguments": list(arguments),
        "environment": dict(environment),
    }
    return json.dumps(header).encode() + b"\n" + packed
