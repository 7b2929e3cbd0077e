"""Divides the processor's caches: makes a group for a server's processes, and restores the others' parts.

A group that is there already is never changed or removed, whoever made it. The group of all tasks that are in
no other always exists: its parts of the caches are changed, and restored.

After a kill, a group that is divided as planned counts as ours. One that is not may be ours, made and not yet
divided, or somebody else's: the kernel keeps no mark that would tell. It is left alone as changed by others,
and the user decides whether to rmdir it. What else stays unknown: a group of that name with exactly our
division, made by somebody else after a kill or after ours was removed.

A server's processes are moved together with its postmaster, whose later ones begin in its group. A postmaster
that is started anew is in no group: the division lasts as long as the server runs.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from pgdyno.apply.writers.kernel_file import BOOT, KernelFileWriter
from pgdyno.base.errors import (
    AlreadyThereError,
    PgdynoError,
    PrivilegeError,
    RefusedError,
    ServerError,
    SettingError,
)
from pgdyno.base.ports import Found
from pgdyno.host.cache_allocation import (
    GROUP,
    LAST_LEVEL,
    MONITORING,
    OF_GROUP,
    RESCTRL,
    Division,
    division_of,
    is_divided_so,
    is_same_division,
)
from pgdyno.host.files.resctrl import Resctrl
from pgdyno.model.plans.plan import CACHE_GROUP

_TASKS = f"{GROUP}/tasks"
_MONITORING = f"{GROUP}/{MONITORING}"
_LAST_ANSWER = f"{RESCTRL}/info/last_cmd_status"
_PROGRAM = "postgres"
_LIMIT_BYTES = 1 << 20  # arbitrary; a task takes eight bytes
_PASSES = 100  # arbitrary; each finds what was forked during the one before, and few are


@dataclass(frozen=True)
class CacheGroupWriter(KernelFileWriter):
    """Reads, makes and restores divisions; the keys are ``OF_GROUP`` and ``OF_OTHERS``."""

    kind: str = CACHE_GROUP
    resctrl: Resctrl = field(default_factory=Resctrl)

    def read(self, key: str) -> Found:
        """Return the present division, None where there is no such group, and the boot's id."""
        return Found(self.value_if_any(key), {BOOT: self._boot()})

    def check(self, key: str) -> None:
        """Refuse caches that cannot be divided, and a group that is there. Changes nothing.

        Raises: SettingError, PrivilegeError, AlreadyThereError.
        """
        if not self._locate(f"{RESCTRL}/info").is_dir():
            raise SettingError("the caches cannot be divided", detail=f"{RESCTRL} is not mounted")
        if not os.access(self._locate(RESCTRL), os.W_OK):
            raise PrivilegeError("cannot divide the caches", hint="run pgdyno as root, on the machine itself")
        if key == OF_GROUP and self._locate(GROUP).exists():
            raise _taken()

    def rehearse(self, key: str, found: Found) -> None:
        """Write the present parts of the others again; refuse a group that has come meanwhile."""
        if key != OF_GROUP:
            self._put(key, _division(found.value or ""))
        elif found.value is not None or self._locate(GROUP).exists():
            raise _taken()

    def write(self, key: str, value: str) -> None:
        """Divide the caches so, in a group of our own with a server's processes if that is the key.

        A group that cannot be divided so is removed at once, while it is known to be ours.

        Raises: SettingError with the kernel's words; ServerError; AlreadyThereError.
        """
        division = _division(value)
        if key != OF_GROUP:
            self._put(key, division)
            return
        self._make()
        try:
            self._put(key, division)
            if division.data_directory is not None:
                self._move(division.data_directory)
        except (Exception, KeyboardInterrupt):
            self._remove()
            raise

    def restore(self, key: str, found: Found) -> None:
        """Remove our group, which gives its tasks back to the others; or give the others their parts back.

        Raises: RefusedError while others measure in our group: their groups would go with it.
        """
        if self.is_gone(found):
            return
        now = self.value_if_any(key)
        if key == OF_GROUP:
            if found.value is None and now is not None:
                self._require_unmeasured()
                self._remove()
        elif found.value is not None and not self.equals(key, now, found.value):
            self._put(key, _division(found.value))

    def equals(self, key: str, one: str | None, other: str | None) -> bool:  # noqa: ARG002 — the port's
        """Whether two divisions are the same; the group's processes may be others."""
        return one == other if one is None or other is None else is_same_division(one, other)

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether the caches are divided as requested, and our group has the server's processes."""
        is_occupied = key != OF_GROUP or _division(effective).data_directory is not None
        return is_divided_so(wanted, effective) and is_occupied

    def verify(self, key: str) -> str | None:
        """Return the kernel's division, read again, with the directory that the group's tasks work in."""
        return self.value_if_any(key)

    def value_if_any(self, key: str) -> str | None:
        """Return the division of the last-level cache; None if there is no such group.

        What others set for other caches is neither compared nor written back.

        Raises: PrivilegeError, RefusedError.
        """
        text = self._text(key)
        division = None if text is None else division_of(text)
        if division is None:
            return None
        masks = {cache: one for cache, one in division.masks.items() if cache in LAST_LEVEL}
        return str(Division(masks, self._occupant() if key == OF_GROUP else None))

    def is_on_the_way(self, now: str, one: str, other: str) -> bool:  # noqa: ARG002 — the port's
        """Return False: the kernel takes a division whole.

        An undivided group may be somebody else's.
        """
        return False

    def _make(self) -> None:
        try:
            self.resctrl.make_group(GROUP)
        except FileExistsError as error:
            raise _taken() from error
        except OSError as error:
            raise self._refused("the group could not be made", error) from error

    def _remove(self) -> None:
        try:
            self.resctrl.remove_group(GROUP)
        except OSError as error:
            raise self._refused("the group could not be removed", error) from error

    def _require_unmeasured(self) -> None:
        place = self._locate(_MONITORING)
        if names := sorted(entry.name for entry in place.iterdir()) if place.is_dir() else []:
            raise RefusedError(
                f"{GROUP} is not removed: others measure in it by now",
                detail=f"in {_MONITORING}: {', '.join(names)}",
                hint="when they need these groups no longer, remove them with rmdir, and revert again",
            )

    def _put(self, key: str, division: Division) -> None:
        """Write all lines at once: the kernel takes all of them or none."""
        text = "".join(f"{line}\n" for line in division.lines)
        try:
            with self.tree.opened(key, os.O_WRONLY | os.O_TRUNC) as file:
                os.write(file, text.encode())
        except OSError as error:
            raise self._refused(f"the kernel does not divide the caches into {division}", error) from error

    def _move(self, directory: str) -> None:
        """Move a server's processes into the group. Raises: ServerError if there is none."""
        moved: set[int] = set()
        for _ in range(_PASSES):
            found = set(self._tasks_of(directory))
            if not found - moved:
                break
            for task in sorted(found - moved):
                self._assign(task)
            moved |= found
        if not moved:
            raise ServerError(f"no process of the server in {directory} was found")

    def _assign(self, task: int) -> None:
        try:
            with self.tree.opened(_TASKS, os.O_WRONLY | os.O_APPEND) as file:
                os.write(file, f"{task}\n".encode())
        except ProcessLookupError:  # it has ended meanwhile
            return
        except OSError as error:
            raise self._refused(f"process {task} could not be moved into the group", error) from error

    def _tasks_of(self, directory: str) -> Iterator[int]:
        """Yield the tasks of PostgreSQL's processes that work in a directory."""
        for entry in self._locate("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with suppress(
                FileNotFoundError, ProcessLookupError, PermissionError
            ):  # it has ended, or is not ours
                is_postgres = PurePath((entry / "exe").readlink()).name.startswith(_PROGRAM)
                if is_postgres and (entry / "cwd").samefile(self._locate(directory)):
                    yield from (int(task.name) for task in (entry / "task").iterdir())

    def _occupant(self) -> str | None:
        """Return the directory that the group's first task works in; None if it has none."""
        try:
            with self.tree.opened(_TASKS, os.O_RDONLY) as file:
                tasks = os.read(file, _LIMIT_BYTES).decode().split()
        except FileNotFoundError:
            return None
        for task in tasks:
            with suppress(OSError):  # it has ended
                return str((self._locate("/proc") / task / "cwd").readlink())
        return None

    def _refused(self, message: str, error: OSError) -> PgdynoError:
        """Return the error, with the kernel's own words on its last answer."""
        with suppress(OSError):
            said = Path(self._locate(_LAST_ANSWER)).read_text(errors="replace").strip()
            if said not in ("", "ok"):
                return SettingError(message, detail=said)
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return PrivilegeError(message, detail=error.strerror, hint="run pgdyno as root")
        return SettingError(message, detail=error.strerror)


def _division(text: str) -> Division:
    """Parse a division. Raises: SettingError if it is none."""
    division = division_of(text)
    if division is None:
        raise SettingError(
            f'"{text}" divides no cache', hint="for example L3CODE:0=fffff L3DATA:0=fff00 for /srv/data"
        )
    return division


def _taken() -> AlreadyThereError:
    return AlreadyThereError(
        f"the group {GROUP} is there already",
        detail="a group that exists is neither changed nor removed: other processes may rely on it",
        hint="pgdyno status says whether it is pgdyno's: revert it first; else rmdir it, if nobody needs it",
    )
