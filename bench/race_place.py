"""The two directories of the race: a data directory that its owner exchanges, and one of root's.

BASE/17/main          the data directory, with 17 and BASE the attacker's
BASE/17.link          → VAULT, so that 17/main is VAULT/main once they are exchanged
BASE/17/main.link     → VAULT/main
BASE/17/main/F.link   → VAULT/main/F, for each file F
BASE/17/main/F.fifo   a FIFO, for each file F
VAULT/main            root's, closed to everybody else, with files of the same names
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

ROOTS_TEXT = "for-roots-eyes-only"
ROOTS_IDENTIFIER = int.from_bytes(b"rootonly", sys.byteorder)
IDENTIFIER, PORT, STARTED = 7710499856251902124, "5432", 1_790_000_000
NOBODY_PID, INIT_PID = 4_194_305, 1  # above Linux's limit; always there
FILES = ("postgresql.auto.conf", "postmaster.pid", "pg_hba.conf", "pg_ctl.conf", "current")
_ALWAYS_WATCHED = ("", "pg_hba.conf")  # one changes with every name, the other one is appended to

Entry = tuple[int, int, int, int, int, bytes]
"""Mode, owner, group, times of the content and of the entry (ns), content or target."""


@dataclass(frozen=True)
class Place:
    """Both directories; ``uid`` is the attacker's."""

    base: Path
    vault: Path
    uid: int
    gid: int

    @property
    def data(self) -> Path:
        """The data directory as root is told of it."""
        return self.base / "17/main"

    @property
    def victim(self) -> Path:
        """The directory in which nothing may happen."""
        return self.vault / "main"

    def build(self) -> None:
        """Make everything."""
        _fill(self.data, identifier=IDENTIFIER, pid=NOBODY_PID, text="# of the server\n", link="/usr/lib/a")
        (self.base / "17.link").symlink_to(self.vault)
        (self.base / "17/main.link").symlink_to(self.victim)
        for name in FILES:
            (self.data / f"{name}.link").symlink_to(self.victim / name)
            os.mkfifo(self.data / f"{name}.fifo")
        for path in (self.base, *self.base.rglob("*")):
            os.lchown(path, self.uid, self.gid)
        self.build_victim()

    def build_victim(self) -> None:
        """Make root's directory, or make it anew where somebody has changed it."""
        self.vault.chmod(0o700)
        if self.victim.exists():
            shutil.rmtree(self.victim)
        link = f"/{ROOTS_TEXT}"
        _fill(self.victim, identifier=ROOTS_IDENTIFIER, pid=INIT_PID, text=f"# {ROOTS_TEXT}\n", link=link)
        (self.victim / "patroni.dynamic.json").write_text(ROOTS_TEXT)
        (self.victim / "postgresql.auto.conf.pgdyno").write_text(ROOTS_TEXT)
        (self.victim / "99-site.conf").write_text("vm.swappiness = 10\n")
        for path in self.victim.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o700 if path.is_dir() else 0o600)

    def traces(self) -> tuple[int, ...]:
        """Return what a change of root's directory changes, in some microseconds."""
        try:
            found = [os.lstat(self.victim / name) for name in _ALWAYS_WATCHED]
        except FileNotFoundError:
            return ()
        return tuple(time for one in found for time in (one.st_mtime_ns, one.st_ctime_ns))

    def everything(self) -> dict[str, Entry]:
        """Return all that root's directory has."""
        return {str(path): _entry(path) for path in (self.vault, *self.vault.rglob("*"))}


def _fill(directory: Path, *, identifier: int, pid: int, text: str, link: str) -> None:
    (directory / "global").mkdir(parents=True)
    (directory / "global/pg_control").write_bytes(identifier.to_bytes(8, sys.byteorder) + bytes(8184))
    (directory / "postgresql.auto.conf").write_text(text)
    (directory / "postmaster.pid").write_text(f"{pid}\n{directory}\n{STARTED}\n{PORT}\n")
    (directory / "pg_hba.conf").write_text(text)
    (directory / "pg_ctl.conf").write_text(f"pg_ctl_options = '-o {text[2:-1]}'\n")
    (directory / "current").symlink_to(link)


def _entry(path: Path) -> Entry:
    status = path.lstat()
    content = b""
    if path.is_symlink():
        content = os.fsencode(path.readlink())
    elif path.is_file():
        content = path.read_bytes()
    return (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_ctime_ns, content)
