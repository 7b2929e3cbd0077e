"""Runs programs that see an /etc of their own: users whom they make are on no real machine.

It is a copy, mounted over /etc in namespaces of mounts and processes that end with the program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USERS = ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")
# The shell stays as the first process of the namespace, whom no signal of its own could end.
_IN_THERE = 'mount --bind "$0" /etc && "$@"; exit $?'


@dataclass(frozen=True)
class OwnEtc:
    """A copy of /etc, and a PGDYNO_HOME that every user can reach."""

    etc: Path
    home: Path

    def run(self, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a program there as root, and return how it ended."""
        return subprocess.run(
            [
                *("unshare", "--mount", "--propagation", "private"),
                *("--pid", "--fork", "--kill-child", "--mount-proc"),
                *("sh", "-c", _IN_THERE, str(self.etc), *argv),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=250,
            cwd=ROOT,
            env={**os.environ, "PGDYNO_HOME": str(self.home), "PGDYNO_AS_BOOTED": "1", **environment},
        )

    def pgdyno(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the command there."""
        return self.run(sys.executable, "-m", "pgdyno", *arguments, **environment)

    def driven(self, action: str, *arguments: str, **environment: str) -> str:
        """Let the driver do something there, and return what it prints; fail the test if it fails."""
        driver = ("-m", "tests.integration.account_driver", action)
        done = self.run(sys.executable, *driver, *arguments, **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def users(self) -> dict[str, str]:
        """Return the contents of the files that hold users and groups."""
        files = (self.etc / name for name in USERS)
        return {file.name: file.read_text() for file in files if file.exists()}

    def uid(self) -> int:
        """Return the number of the user pgdyno."""
        entries = (line.split(":") for line in self.users()["passwd"].splitlines())
        return next(int(entry[2]) for entry in entries if entry[0] == "pgdyno")


@contextmanager
def own_etc() -> Iterator[OwnEtc]:
    """Provide such a copy of the machine's /etc. Skips the test where it cannot be mounted."""
    place = Path(tempfile.mkdtemp(prefix="pgdyno-etc-"))
    try:
        place.chmod(0o755)
        shutil.copytree("/etc", place / "etc", symlinks=True)
        (place / "home").mkdir(mode=0o755)
        made = OwnEtc(place / "etc", place / "home")
        tried = made.run("cmp", "/etc/passwd", str(made.etc / "passwd"))
        if tried.returncode != 0:
            pytest.skip(f"no namespaces for mounts and processes here: {tried.stderr}")
        if "\npgdyno:" in made.users()["passwd"] + made.users()["group"]:
            pytest.skip("this machine has a user or group pgdyno")
        yield made
    finally:
        shutil.rmtree(place)
