"""Run a load host's own sysbench, controlled by a program that is sent through ssh and removed afterwards."""

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
from pgdyno.remote.load_driver import LOAD_MODULES, DriverSending, sent_version
from pgdyno.remote.sent_program import program_text, start_command
from pgdyno.remote.ssh import ssh_command, ssh_environment

__all__ = ["NOT_INSTALLED", "SYSBENCH_DOES_NOT_RUN", "sysbench_sending", "sysbench_version"]

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
