"""Check that only the caller and root can change pgdyno's configuration files and working directories.

The rules are those of ssh for its own files: a file belongs to the caller or root, and no one else can write
it. The same holds for each directory and link on the path, except that sticky directories such as /tmp are
allowed there.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import RefusedError
from pgdyno.host.files.walk import walk


@dataclass(frozen=True)
class Weakness:
    """A path through which other users could change a file or directory, the reason, and the fix.

    ``mending`` is a command; None if the path belongs to another user, who must fix it.
    """

    place: Path
    why: str
    mending: tuple[str, ...] | None


def weakness(path: Path) -> Weakness | None:
    """Return how other users could change a file or directory; None if they cannot.

    It need not exist yet. Raises: OSError if the path cannot be followed.
    """
    there = next(one for one in (path.absolute(), *path.absolute().parents) if os.path.lexists(one))
    with walk(there, may_be_file=True) as reached:
        passed = [*reached.links, *reached.directories]
        if there != path.absolute():
            passed.append((there, reached.status))
        for place, status in passed:
            if found := _weakness_of(place, status, is_passed=True):
                return found
        return None if there != path.absolute() else _weakness_of(path, reached.status, is_passed=False)


def require_trusted(path: Path, purpose: str, hint: str | None = None) -> None:
    """Refuse a file or directory that other users could change.

    ``purpose`` is a clause about its role; ``hint`` replaces the default hint. Raises: RefusedError.
    """
    try:
        found = weakness(path)
    except OSError as error:
        raise RefusedError(f"{path} cannot be followed", detail=error.strerror) from error
    if found is None:
        return
    subject = "it" if found.place == path else f"{found.place} on its path"
    moving = "move it to a directory that you own, and whose parents only you and root own"
    fixing = None if found.mending is None else f"check its content, then run {shlex.join(found.mending)}"
    raise RefusedError(
        f"{path} is not used: {subject} {found.why}",
        detail=f"{purpose}: only you and root may be able to change it",
        hint=hint or (moving if fixing is None else f"{fixing}; or {moving}"),
    )


def _weakness_of(place: Path, status: os.stat_result, *, is_passed: bool) -> Weakness | None:
    caller = os.geteuid()
    if status.st_uid not in (0, caller):
        why = f"belongs to {_name_of(status.st_uid)}, but you are {_name_of(caller)}"
        mending = None if is_passed or caller != 0 else ("chown", _name_of(caller), str(place))
        return Weakness(place, why, mending)
    if stat.S_ISLNK(status.st_mode) or (is_passed and status.st_mode & stat.S_ISVTX):
        return None
    writer = "everyone" if status.st_mode & stat.S_IWOTH else _writing_group(status)
    if writer is None:
        return None
    mending = ("chmod", "go-w", str(place)) if caller in (0, status.st_uid) else None
    return Weakness(place, f"can be changed by {writer}", mending)


def _writing_group(status: os.stat_result) -> str | None:
    """Return the group with write permission, unless it is root's or the caller is its only member.

    Many systems give each user a private group, and make new files writable by it (umask 002).
    """
    if not status.st_mode & stat.S_IWGRP or status.st_gid == 0:
        return None
    users = pwd.getpwall()
    try:
        group = grp.getgrgid(status.st_gid)
    except KeyError:
        return f"group {status.st_gid}"
    members = {one.pw_uid for one in users if one.pw_gid == status.st_gid or one.pw_name in group.gr_mem}
    return None if members == {os.geteuid()} else f"group {group.gr_name}"


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
