"""Command lines of ssh: the user's own configuration, and nothing that could wait for an answer.

The host's key is checked whatever the configuration says, unless a master connection of the user's is there:
it was checked as that was opened. Another ssh reaches a jump host, with the configuration alone: its options
for keys and masters hold there. Neither has a terminal or a dialogue to ask for a password in.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from pgdyno.model.cells.cell import CellHost

_CONNECT_LIMIT_S = 10
_SILENCE_S, _SILENCES = 3, 3
"""A link that is cut is noticed after 9 s: ssh asks the other end whether it is there."""

_OPTIONS = (
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "NoHostAuthenticationForLocalhost=no",
    "ControlMaster=no",  # a master of the user's is used, but this ssh becomes none
    "LogLevel=INFO",
    f"ConnectTimeout={_CONNECT_LIMIT_S}",
    f"ServerAliveInterval={_SILENCE_S}",
    f"ServerAliveCountMax={_SILENCES}",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "EscapeChar=none",
)

_DIALOGUES = frozenset({"DISPLAY", "WAYLAND_DISPLAY", "SSH_ASKPASS"})
"""Variables by which ssh before 8.4, which does not know SSH_ASKPASS_REQUIRE, asks in a window."""


_NO_MASTER = "ControlPath=none"
"""A master asks whether the other end is there as its own configuration says, which is never by default."""


def ssh_command(
    host: CellHost, ssh_config: Path | None, command: Sequence[str], *, is_alone: bool = False
) -> list[str]:
    """Return the arguments that run a command on a host, each argument arriving there as it is.

    ``is_alone``: it does not go through a master connection of the user's, so that a cut link is noticed.
    """
    argv = ["ssh", *_reaching(host, ssh_config)]
    for option in (*_OPTIONS, _NO_MASTER) if is_alone else _OPTIONS:
        argv += ["-o", option]
    return [*argv, "--", host.destination, shlex.join(command)]


def by_hand(host: CellHost, ssh_config: Path | None) -> str:
    """Return the command that reaches a host by hand, the same way, for a message."""
    return shlex.join(["ssh", *_reaching(host, ssh_config), host.destination])


def ssh_environment() -> Mapping[str, str]:
    """Return the environment of ssh: the user's, English, without a dialogue for passwords."""
    kept = {name: value for name, value in os.environ.items() if name not in _DIALOGUES}
    return {**kept, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}


def _reaching(host: CellHost, ssh_config: Path | None) -> list[str]:
    argv = [] if ssh_config is None else ["-F", str(ssh_config)]
    argv += [] if host.jump is None else ["-J", host.jump]
    argv += [] if host.key is None else ["-i", str(host.key), "-o", "IdentitiesOnly=yes"]
    return argv
