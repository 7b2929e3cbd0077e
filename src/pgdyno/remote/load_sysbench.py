"""A load host's own sysbench: conducted by a program that is sent through ssh, and gone afterwards."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from pgdyno.base.errors import RemoteHostError
from pgdyno.model.cells.cell import CellHost
from pgdyno.remote._load_program import NOT_RUN
from pgdyno.remote._sysbench_program import NOT_INSTALLED, SYSBENCH
from pgdyno.remote.load_driver import LOAD_MODULES, DriverSending, said_version
from pgdyno.remote.sent_program import program_text, start_command
from pgdyno.remote.ssh import ssh_command, ssh_environment

__all__ = ["NOT_INSTALLED", "SYSBENCH_DOES_NOT_RUN", "sysbench_sending", "sysbench_version"]

SYSBENCH_MODULES = (*LOAD_MODULES, "_own_programs", "_sysbench_program")
SYSBENCH_DOES_NOT_RUN = f"{SYSBENCH} {NOT_RUN}"  # the host's last words then; the system's follow
_VERSION = re.compile(rf"{SYSBENCH} [0-9][0-9A-Za-z.+~-]{{0,39}}", re.ASCII)  # it stands in notes


def sysbench_sending(
    host: CellHost,
    ssh_config: Path | None,
    wrapper: str,
    environment: Mapping[str, str],
    lifetime_s: float,
    owner: str,
) -> DriverSending:
    """Return how to let a host's sysbench run, with ``wrapper`` as the script around its own.

    The rest is as ``driver_sending`` has it.
    """
    header = {"wrapper": wrapper, "environment": dict(environment)}
    return _sending(host, ssh_config, header, lifetime_s, owner)


def sysbench_version(host: CellHost, ssh_config: Path | None, limit_s: float, owner: str) -> str:
    """Return the name and version that a host's sysbench says, without any remarks.

    Raises: RemoteHostError with its words, or for other words than a version.
    """
    sending = _sending(host, ssh_config, {"says_version": True}, limit_s, owner)
    found = _VERSION.match(said_version(sending, SYSBENCH, limit_s))
    if found is None:
        raise RemoteHostError(f"{SYSBENCH} says other things there than its version")
    return found[0]


def _sending(
    host: CellHost, ssh_config: Path | None, header: Mapping[str, object], lifetime_s: float, owner: str
) -> DriverSending:
    program, greeting = program_text(SYSBENCH_MODULES), f"{owner}-{secrets.token_hex(16)}"
    argv = ssh_command(host, ssh_config, start_command(program, greeting, lifetime_s), is_alone=True)
    first = program + json.dumps({"says_version": False, "host": host.name, **header}).encode() + b"\n"
    return DriverSending(argv, ssh_environment(), first, greeting)
