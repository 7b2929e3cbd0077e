"""GNU's debugger, which reads types from a program's debug information, or from a file that belongs to it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from pgdyno.host.tracing.controlled import Wrap
from pgdyno.model.facts import Unknown

_LIMIT_S = 60.0
_NOT_INSTALLED = Unknown("gdb is not installed: apt-get install gdb, dnf install gdb")
_NO_DEBUG_INFORMATION = Unknown(
    "there is no debug information of this program: it is in the package postgresql-NN-dbgsym (PGDG; Debian "
    "has an archive for such packages, debian-debug) or postgresqlNN-debuginfo (RPM), of exactly the "
    "server's version, or in a build of your own with --enable-debug"
)
_ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}  # no DEBUGINFOD_URLS: gdb would load files from there


def read_types(
    program: Path, names: Sequence[str], wrap: Wrap, find: Callable[[str], str | None] = shutil.which
) -> str | Unknown:
    """Return gdb's words on those types that a program has; or why there are none.

    ``wrap`` lets gdb run as another user. It reads no configuration, and runs neither the program nor scripts
    that lie beside it.
    """
    gdb = find("gdb")
    if gdb is None:
        return _NOT_INSTALLED
    safely = (gdb, "-nx", "-batch", "-iex", "set auto-load off")
    asked = (part for name in names for one in _questions(name) for part in ("-ex", one))
    try:
        done = subprocess.run(
            wrap((*safely, *asked, str(program))),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LIMIT_S,
            env=_ENVIRONMENT,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return Unknown(f"gdb did not end within {_LIMIT_S:.0f} s")
    return done.stdout if "type " in done.stdout else _NO_DEBUG_INFORMATION


def _questions(name: str) -> tuple[str, str]:
    """Return gdb's commands; it passes over a type that it does not know."""
    return f'printf "type %d %d {name}\\n", sizeof({name}), _Alignof({name})', f"ptype /o {name}"
