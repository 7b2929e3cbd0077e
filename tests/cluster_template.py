"""Data directories for the servers of tests, copied from one that initdb made.

Initdb takes half a second of CPU time, and tests start hundreds of servers. Each copy gets a system
identifier of its own, by which clusters are told apart.
"""

from __future__ import annotations

import atexit
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

INITDB = ("-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C")


def make_cluster(bin_directory: Path, as_user: Sequence[str], directory: Path) -> Path:
    """Make ``data`` in a directory of the user's, and return it."""
    data = directory / "data"
    if not (bin_directory / "pg_resetwal").exists():  # a server without its client programs
        _run(*as_user, str(bin_directory / "initdb"), "-D", str(data), *INITDB)
        return data
    template = _template(bin_directory, tuple(as_user))
    _run(*as_user, "cp", "--archive", "--reflink=auto", str(template), str(data))
    with (data / "global" / "pg_control").open("r+b") as control:
        control.write(
            secrets.token_bytes(4)
        )  # of the eight; pg_resetwal takes them, and writes WAL with them
    _run(*as_user, str(bin_directory / "pg_resetwal"), "--force", "-D", str(data))
    return data


@cache
def _template(bin_directory: Path, as_user: tuple[str, ...]) -> Path:
    """Make the data directory that others are copied from; it is removed when Python ends."""
    parent = Path(tempfile.mkdtemp(prefix="pgdyno-template-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    parent.chmod(0o777)
    _run(*as_user, str(bin_directory / "initdb"), "-D", str(parent / "data"), *INITDB)
    return parent / "data"


def _run(*command: str) -> None:
    """Run a program as it is; fails the test if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=120)
    assert done.returncode == 0, f"{command} failed: {done.stdout}{done.stderr}"
