"""Mounts the file system in which the kernel lets caches be divided, and unmounts it.

Mounted it changes nothing yet: all tasks are in one group, which has all of the caches. But with CDP, code
and data then count as two caches, for which the processor has half as many groups; that can be chosen only
when it is mounted.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.apply.writers.kernel_file import BOOT, KernelFileWriter
from pgdyno.base.errors import AlreadyThereError, PrivilegeError, RefusedError, SettingError
from pgdyno.base.ports import Found
from pgdyno.host.cache_allocation import (
    GROUP,
    MONITORING,
    NO_GROUPS,
    RESCTRL,
    SCHEMATA,
    WITH_CDP,
    WITHOUT_CDP,
    division_of,
)
from pgdyno.host.files.resctrl import Resctrl
from pgdyno.model.plans.plan import CACHE_MOUNT

_OURS = GROUP.removeprefix(f"{RESCTRL}/")


@dataclass(frozen=True)
class CacheMountWriter(KernelFileWriter):
    """Mounts and unmounts it; the key is ``RESCTRL``, the values ``WITH_CDP`` and ``WITHOUT_CDP``."""

    kind: str = CACHE_MOUNT
    resctrl: Resctrl = field(default_factory=Resctrl)

    def read(self, key: str) -> Found:
        """Return how it is mounted, and the boot's id."""
        return Found(self.value_if_any(key), {BOOT: self._boot()})

    def check(self, key: str) -> None:
        """Refuse where the kernel has no such file system, or it is mounted. Raises: SettingError."""
        if not self._locate(key).is_dir():
            raise SettingError("the caches cannot be divided here", detail=f"there is no {key}")
        if not os.access(self._locate(key), os.W_OK):
            raise PrivilegeError(f"cannot mount {key}", hint="run pgdyno as root, on the machine itself")
        if (value := self.value_if_any(key)) is not None:
            raise SettingError(f"{key} is mounted already, {value}", hint="plan anew")

    def rehearse(self, key: str, found: Found) -> None:
        """Do nothing: a mounted file system can be unmounted."""

    def write(self, key: str, value: str) -> None:  # noqa: ARG002 — the port's signature
        """Mount it.

        Raises: ServerError with the words of mount(8); SettingError for another value; AlreadyThereError if
        somebody else has mounted it meanwhile.
        """
        if value not in (WITH_CDP, WITHOUT_CDP):
            raise SettingError(f'"{value}" is no way to mount {RESCTRL}', hint=f"{WITH_CDP} or {WITHOUT_CDP}")
        if (present := self.value_if_any(RESCTRL)) is not None:
            raise AlreadyThereError(f"{RESCTRL} is mounted already, {present}", hint="plan anew")
        self.resctrl.mount(with_cdp=value == WITH_CDP)

    def restore(self, key: str, found: Found) -> None:
        """Unmount it, if it was not mounted before.

        Raises: RefusedError while there are groups in it, or the caches are divided: it would be lost.
        """
        if found.value is not None or self.is_gone(found) or self.value_if_any(key) is None:
            return
        _require_nothing_to_lose(Path(self._locate(key)))
        self.resctrl.unmount()

    def equals(self, key: str, one: str | None, other: str | None) -> bool:  # noqa: ARG002 — the port's
        """Whether it is mounted the same way."""
        return one == other

    def meets(self, key: str, wanted: str, effective: str) -> bool:  # noqa: ARG002 — the port's
        """Whether it is mounted as requested."""
        return wanted == effective

    def verify(self, key: str) -> str | None:
        """Return how it is mounted, as the kernel lists it."""
        return self.value_if_any(key)

    def value_if_any(self, key: str) -> str | None:
        """Return how it is mounted; None if it is not. Raises: PrivilegeError."""
        try:
            mounts = self._locate("/proc/mounts").read_text(errors="replace")
        except OSError as error:
            raise PrivilegeError("could not read /proc/mounts", detail=error.strerror) from error
        for line in mounts.splitlines():
            _, place, kind, options, *_ = line.split(" ")
            if (place, kind) == (key, "resctrl"):
                return WITH_CDP if "cdp" in options.split(",") else WITHOUT_CDP
        return None


def _require_nothing_to_lose(top: Path) -> None:
    groups = _groups(top)
    if others := [name for name in groups if name != _OURS]:
        raise RefusedError(
            f"{RESCTRL} is not unmounted: others divide or measure the caches by now",
            detail=f"groups: {', '.join(others)}",
            hint="when they need their groups no longer, remove them with rmdir, and revert again",
        )
    if groups:
        raise RefusedError(
            f"{RESCTRL} is not unmounted: {GROUP} is still there",
            hint="pgdyno status says which apply has made it: pgdyno revert undoes that one first",
        )
    if divided := _divided(top):
        raise RefusedError(
            f"{RESCTRL} is not unmounted: the caches of all tasks are divided by now",
            detail=f"{RESCTRL}{SCHEMATA} has {divided}",
            hint="when nobody needs that any longer, write the whole masks into it, and revert again",
        )


def _groups(top: Path) -> tuple[str, ...]:
    """Return the groups in it, and those that only measure: of the top, and of each group."""
    groups = [name for name in _directories(top) if name not in NO_GROUPS]
    places = [MONITORING, *(f"{name}/{MONITORING}" for name in groups)]
    return (*groups, *(f"{place}/{name}" for place in places for name in _directories(top / place)))


def _directories(place: Path) -> list[str]:
    return sorted(entry.name for entry in place.iterdir() if entry.is_dir()) if place.is_dir() else []


def _divided(top: Path) -> str | None:
    """Return the division of all tasks that are in no group; None if they have all of the caches."""
    file = top / SCHEMATA.lstrip("/")
    found = division_of(file.read_text(errors="replace")) if file.exists() else None
    if found is None:
        return None
    is_whole = all(set(masks.values()) == {_whole(top, cache)} for cache, masks in found.masks.items())
    return None if is_whole else str(found)


def _whole(top: Path, cache: str) -> int | None:
    """Return the mask of all parts; None if the kernel does not say, and then nothing counts as whole."""
    with suppress(OSError, ValueError):
        return int((top / "info" / cache / "cbm_mask").read_text(), 16)
    return None
