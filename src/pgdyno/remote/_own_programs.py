"""Programs that others could have put there, as root meets them on this host. Sent like its neighbours.

Root runs a program itself only if nobody else can exchange it, or a directory above it. One that a single
other user can exchange runs as that user, who gains nothing by it; any other is not run.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import stat
from pathlib import Path
from typing import Any

NO_NEW_PRIVILEGES = 38  # linux/prctl.h
NO_GROUP = 65534


def owner_of(program: Path) -> int:
    """Return the user that a program is to run as; its path has no links.

    Raises: OSError if we are root, and several users, or a group, can exchange it.
    """
    if os.geteuid() != 0:
        return os.geteuid()
    others = set()
    for place in (program, *program.parents):
        status = place.lstat()
        others |= {status.st_uid} - {0}
        is_sticky = place != program and status.st_mode & stat.S_ISVTX
        if not is_sticky and is_open(status):
            raise PermissionError(0, f"a group, or everybody, can change {place}, and you are root")
    if len(others) > 1:
        raise PermissionError(0, f"users {sorted(others)} can exchange it, and you are root")
    return others.pop() if others else 0


def is_open(status: os.stat_result) -> bool:
    """Return whether others than the owner can write: everybody, or a group that is not the owner's own."""
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and status.st_gid not in (0, group_of(status.st_uid))


def group_of(user: int) -> int:
    """Return the first group of a user; nobody's if he has no name."""
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return NO_GROUP


def as_user(user: int) -> dict[str, Any]:
    """Return the arguments of subprocess by which a program runs as a user.

    It has neither our environment nor our terminal, where it could type commands.
    """
    if user == os.geteuid():
        return {}

    def become() -> None:
        os.setgroups([])
        os.setgid(group_of(user))
        os.setuid(user)
        ctypes.CDLL(None).prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)

    clean = {"PATH": os.defpath, "LC_ALL": "C"}
    return {"preexec_fn": become, "cwd": "/", "env": clean, "start_new_session": True}
