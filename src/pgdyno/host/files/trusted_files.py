"""Files that steer pgdyno, and directories that it works in: nobody but the caller and root can change them.

As ssh has it for its own files: they belong to the caller or to root, and nobody else can write them. The
same holds for each directory and link that leads there; a directory where everybody may make entries of his
own, as in /tmp, may be one of them.
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
    """A place through which others could change a file or directory, and why; the command that mends it.

    None mends what is another user's: it is that user's to change.
    """

    place: Path
    why: str
    mending: tuple[str, ...] | None


def weakness(path: Path) -> Weakness | None:
    """Return how others could change a file or directory; None if they cannot.

    It may not be there yet. Raises: OSError if the path cannot be followed.
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
    """Refuse a file or directory that others could change.

    ``purpose`` says what it decides; ``hint`` takes the place of ours. Raises: RefusedError.
    """
    try:
        found = weakness(path)
    except OSError as error:
        raise RefusedError(f"{path} cannot be followed", detail=error.strerror) from error
    if found is None:
        return
    of = "it" if found.place == path else f"{found.place}, which leads there,"
    otherwise = "have it in a directory of your own, below directories of yours and root's alone"
    mended = None if found.mending is None else f"look at it; if it is right, {shlex.join(found.mending)}"
    raise RefusedError(
        f"{path} is not used: {of} {found.why}",
        detail=f"{purpose}: nobody but you and root may be able to change it",
        hint=hint or (otherwise if mended is None else f"{mended}; or {otherwise}"),
    )


def _weakness_of(place: Path, status: os.stat_result, *, is_passed: bool) -> Weakness | None:
    caller = os.geteuid()
    if status.st_uid not in (0, caller):
        why = f"belongs to {_name_of(status.st_uid)}, and you are {_name_of(caller)}"
        mending = None if is_passed or caller != 0 else ("chown", _name_of(caller), str(place))
        return Weakness(place, why, mending)
    if stat.S_ISLNK(status.st_mode) or (is_passed and status.st_mode & stat.S_ISVTX):
        return None
    writer = "everybody" if status.st_mode & stat.S_IWOTH else _group_that_writes(status)
    if writer is None:
        return None
    mending = ("chmod", "go-w", str(place)) if caller in (0, status.st_uid) else None
    return Weakness(place, f"can be changed by {writer}", mending)


def _group_that_writes(status: os.stat_result) -> str | None:
    """Return the group that may write, unless it is root's, or one that the caller alone is in.

    Many systems give each user such a group, and let its members write what he makes (umask 002).
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
