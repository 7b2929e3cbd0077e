"""Standalone: choose the user for running a host's own program, which other users may have replaced.

Root runs a program as root only if no other user can replace it or a directory above it. A program that one
other user can replace runs as that user, who gains nothing from it. Any other program is not run.
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
    """Return the user to run a program as; its path must not contain links.

    Raises: OSError if this user is root, and several users or a group can replace the program.
    """
    if os.geteuid() != 0:
        return os.geteuid()
    others = set()
    for place in (program, *program.parents):
        status = place.lstat()
        others |= {status.st_uid} - {0}
        is_sticky = place != program and status.st_mode & stat.S_ISVTX
        if not is_sticky and is_open(status):
            raise PermissionError(0, f"you are root, and {place} is writable by a group or by all users")
    if len(others) > 1:
        raise PermissionError(0, f"you are root, and users {sorted(others)} can replace it")
    return others.pop() if others else 0


def is_open(status: os.stat_result) -> bool:
    """Return whether a file is writable by all users, or by a group other than its owner's primary group."""
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and status.st_gid not in (0, group_of(status.st_uid))


def group_of(user: int) -> int:
    """Return a user's primary group; that of nobody for an unknown user ID."""
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return NO_GROUP


def as_user(user: int) -> dict[str, Any]:
    """Return keyword arguments of subprocess.Popen to run a program as a user.

    The program gets neither this environment nor this terminal, into which it could inject commands.
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
