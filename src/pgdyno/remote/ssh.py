"""Command lines of ssh: with the user's own configuration, and without prompts.

The host key is always checked, whatever the configuration contains, except over an existing master connection
of the user: it was checked when that was opened. Jump hosts are reached by a separate ssh that follows only
the configuration, including its options for keys and masters. Neither has a terminal or a dialogue to prompt
for a password.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from pgdyno.model.cells.cell import CellHost

_CONNECT_LIMIT_S = 10
_SILENCE_S, _SILENCES = 3, 3
"""A broken connection is detected after 9 s by ssh's keepalives."""

_OPTIONS = (
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "NoHostAuthenticationForLocalhost=no",
    "ControlMaster=no",  # an existing master connection is used, but none is created
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
"""Variables that make ssh before 8.4, which ignores SSH_ASKPASS_REQUIRE, prompt in a window."""


_NO_MASTER = "ControlPath=none"
"""A master connection sends keepalives only by its own configuration; by default it sends none."""


def ssh_command(
    host: CellHost, ssh_config: Path | None, command: Sequence[str], *, is_alone: bool = False
) -> list[str]:
    """Return the arguments to run a command on a host; the command's arguments arrive there unchanged.

    ``is_alone``: do not use a master connection of the user, so that a broken connection is detected.
    """
    argv = ["ssh", *_reaching(host, ssh_config)]
    for option in (*_OPTIONS, _NO_MASTER) if is_alone else _OPTIONS:
        argv += ["-o", option]
    return [*argv, "--", host.destination, shlex.join(command)]


def by_hand(host: CellHost, ssh_config: Path | None) -> str:
    """Return the equivalent interactive ssh command, for messages."""
    return shlex.join(["ssh", *_reaching(host, ssh_config), host.destination])


def ssh_environment() -> Mapping[str, str]:
    """Return the environment of ssh: the user's, with English messages and without password dialogues."""
    kept = {name: value for name, value in os.environ.items() if name not in _DIALOGUES}
    return {**kept, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}


def _reaching(host: CellHost, ssh_config: Path | None) -> list[str]:
    argv = [] if ssh_config is None else ["-F", str(ssh_config)]
    argv += [] if host.jump is None else ["-J", host.jump]
    argv += [] if host.key is None else ["-i", str(host.key), "-o", "IdentitiesOnly=yes"]
    return argv


_PACKAGE = "pgdyno.remote"
_START = (
    'import sys,signal;v=sys.version_info;v<(3,7) and sys.exit("python3 is too old");'
    "signal.setitimer(signal.ITIMER_REAL,float(sys.argv[2]));"
    'exec(compile(sys.stdin.buffer.read({}),"pgdyno-runner","exec"))'
)
"""The alarm is set first: if the connection breaks, the rest of the program never arrives."""


def program_text(modules: Sequence[str]) -> bytes:
    """Return a program that contains modules of this package, and runs the last one's ``main``.

    A module must follow those that it imports (``from pgdyno.remote.MODULE import``): the remote host has no
    such package.
    """
    lines = ["import sys"]
    for module in modules:
        name, text = f"{_PACKAGE}.{module}", Path(__file__).with_name(f"{module}.py").read_text()
        lines.append(f"module = sys.modules[{name!r}] = type(sys)({name!r})")
        lines.append(f"exec(compile({text!a}, {name!r}, 'exec'), module.__dict__)")
    return "\n".join([*lines, "module.main(sys.argv[1])"]).encode()


def start_command(program: bytes, greeting: str, lifetime_s: float) -> list[str]:
    """Return the command that reads a program from its input and runs it for ``lifetime_s`` at most."""
    return ["python3", "-I", "-S", "-c", _START.format(len(program)), greeting, f"{lifetime_s:g}"]
