"""Divide the processor's caches between a group for a server's processes and all other tasks.

An existing group is never changed or removed, whoever made it. The default group, of all tasks in no other
group, always exists: its parts of the caches are changed, and restored.

After a kill, a group with the planned division counts as pgdyno's. Any other one may be pgdyno's, created but
not yet divided, or someone else's: the kernel keeps no mark to distinguish them. It is left alone as changed
by others, and the user decides whether to rmdir it. One case cannot be detected: a group with the same name
and exactly the same division, made by someone else after a kill or after pgdyno's was removed.

A server's processes are moved together with its postmaster; later child processes start in its group. A
restarted postmaster is in no group: the division lasts only as long as the server runs.
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
_PASSES = 100  # arbitrary; each finds the few processes that were forked during the previous one


@dataclass(frozen=True)
class CacheGroupWriter(KernelFileWriter):
    """Reads, makes and restores divisions; the keys are ``OF_GROUP`` and ``OF_OTHERS``."""

    kind: str = CACHE_GROUP
    resctrl: Resctrl = field(default_factory=Resctrl)

    def read(self, key: str) -> Found:
        """Return the present division, None if there is no such group, and the boot id."""
        return Found(self.value_if_any(key), {BOOT: self._boot()})

    def check(self, key: str) -> None:
        """Refuse caches that cannot be divided, and an existing group. Changes nothing.

        Raises: SettingError, PrivilegeError, AlreadyThereError.
        """
        if not self._locate(f"{RESCTRL}/info").is_dir():
            raise SettingError("the caches cannot be divided", detail=f"{RESCTRL} is not mounted")
        if not os.access(self._locate(RESCTRL), os.W_OK):
            raise PrivilegeError("cannot divide the caches", hint="run pgdyno as root, on the machine itself")
        if key == OF_GROUP and self._locate(GROUP).exists():
            raise _taken()

    def rehearse(self, key: str, found: Found) -> None:
        """Write the present parts of other tasks again; refuse a group that another program has just made."""
        if key != OF_GROUP:
            self._put(key, _division(found.value or ""))
        elif found.value is not None or self._locate(GROUP).exists():
            raise _taken()

    def write(self, key: str, value: str) -> None:
        """Write a division; for ``OF_GROUP``, create the group first and move the server's processes into it.

        A group that cannot be divided is removed at once, while it is known to be pgdyno's.

        Raises: SettingError with the kernel's message; ServerError; AlreadyThereError.
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
        """Remove the group, which returns its tasks to the default group; or restore the other tasks' parts.

        Raises: RefusedError while the group contains others' monitoring groups, which would be removed with
        it.
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
        """Whether two divisions are the same, ignoring the group's processes."""
        return one == other if one is None or other is None else is_same_division(one, other)

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether the caches are divided as requested, and the group contains processes."""
        is_occupied = key != OF_GROUP or _division(effective).data_directory is not None
        return is_divided_so(wanted, effective) and is_occupied

    def verify(self, key: str) -> str | None:
        """Return the kernel's division, read again, with the working directory of the group's tasks."""
        return self.value_if_any(key)

    def value_if_any(self, key: str) -> str | None:
        """Return the division of the last-level cache; None if there is no such group.

        The division of other caches is neither compared nor written.

        Raises: PrivilegeError, RefusedError.
        """
        text = self._text(key)
        division = None if text is None else division_of(text)
        if division is None:
            return None
        masks = {cache: one for cache, one in division.masks.items() if cache in LAST_LEVEL}
        return str(Division(masks, self._occupant() if key == OF_GROUP else None))

    def is_on_the_way(self, now: str, one: str, other: str) -> bool:  # noqa: ARG002 — the port's
        """Return False: a division is set atomically, and an undivided group may be another program's."""
        return False

    def _make(self) -> None:
        try:
            self.resctrl.make_group(GROUP)
        except FileExistsError as error:
            raise _taken() from error
        except OSError as error:
            raise self._refused("the group could not be created", error) from error

    def _remove(self) -> None:
        try:
            self.resctrl.remove_group(GROUP)
        except OSError as error:
            raise self._refused("the group could not be removed", error) from error

    def _require_unmeasured(self) -> None:
        place = self._locate(_MONITORING)
        if names := sorted(entry.name for entry in place.iterdir()) if place.is_dir() else []:
            raise RefusedError(
                f"{GROUP} is not removed: other programs have monitoring groups in it",
                detail=f"in {_MONITORING}: {', '.join(names)}",
                hint="when these groups are no longer needed, remove them with rmdir, then revert again",
            )

    def _put(self, key: str, division: Division) -> None:
        """Write all lines at once: the kernel accepts all of them or none."""
        text = "".join(f"{line}\n" for line in division.lines)
        try:
            with self.tree.opened(key, os.O_WRONLY | os.O_TRUNC) as file:
                os.write(file, text.encode())
        except OSError as error:
            raise self._refused(f"the kernel rejects the cache division {division}", error) from error

    def _move(self, directory: str) -> None:
        """Move a server's processes into the group. Raises: ServerError if it has none."""
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
        except ProcessLookupError:  # it has exited
            return
        except OSError as error:
            raise self._refused(f"process {task} could not be moved into the group", error) from error

    def _tasks_of(self, directory: str) -> Iterator[int]:
        """Yield the tasks of PostgreSQL processes with this working directory."""
        for entry in self._locate("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with suppress(
                FileNotFoundError, ProcessLookupError, PermissionError
            ):  # it has exited, or belongs to another user
                is_postgres = PurePath((entry / "exe").readlink()).name.startswith(_PROGRAM)
                if is_postgres and (entry / "cwd").samefile(self._locate(directory)):
                    yield from (int(task.name) for task in (entry / "task").iterdir())

    def _occupant(self) -> str | None:
        """Return the working directory of the group's first task; None if it has no task."""
        try:
            with self.tree.opened(_TASKS, os.O_RDONLY) as file:
                tasks = os.read(file, _LIMIT_BYTES).decode().split()
        except FileNotFoundError:
            return None
        for task in tasks:
            with suppress(OSError):  # it has exited
                return str((self._locate("/proc") / task / "cwd").readlink())
        return None

    def _refused(self, message: str, error: OSError) -> PgdynoError:
        """Return the error, with resctrl's status message if there is one."""
        with suppress(OSError):
            status = Path(self._locate(_LAST_ANSWER)).read_text(errors="replace").strip()
            if status not in ("", "ok"):
                return SettingError(message, detail=status)
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return PrivilegeError(message, detail=error.strerror, hint="run pgdyno as root")
        return SettingError(message, detail=error.strerror)


def _division(text: str) -> Division:
    """Parse a division. Raises: SettingError for an invalid one."""
    division = division_of(text)
    if division is None:
        raise SettingError(
            f'"{text}" is no cache division', hint="for example L3CODE:0=fffff L3DATA:0=fff00 for /srv/data"
        )
    return division


def _taken() -> AlreadyThereError:
    return AlreadyThereError(
        f"the group {GROUP} already exists",
        detail="an existing group is neither changed nor removed, because other programs may need it",
        hint="if pgdyno status lists it, revert it first; else remove it with rmdir if no program needs it",
    )
