"""Programs of several modules, sent through ssh to a python3 without pgdyno."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
