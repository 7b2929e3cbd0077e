"""Mount and unmount resctrl, the kernel's file system for cache allocation.

Mounting it changes nothing by itself: all tasks are in one group with all of the caches. But with CDP, code
and data count as two caches, and the processor has half as many groups; this can only be chosen when
mounting.
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
    """Mounts and unmounts resctrl; the key is ``RESCTRL``, the values ``WITH_CDP`` and ``WITHOUT_CDP``."""

    kind: str = CACHE_MOUNT
    resctrl: Resctrl = field(default_factory=Resctrl)

    def read(self, key: str) -> Found:
        """Return the mount's value, None if it is not mounted, and the boot id."""
        return Found(self.value_if_any(key), {BOOT: self._boot()})

    def check(self, key: str) -> None:
        """Refuse if the kernel does not support resctrl, or it is already mounted.

        Raises: SettingError, PrivilegeError.
        """
        if not self._locate(key).is_dir():
            raise SettingError("the caches cannot be divided on this machine", detail=f"{key} does not exist")
        if not os.access(self._locate(key), os.W_OK):
            raise PrivilegeError(f"cannot mount {key}", hint="run pgdyno as root, on the machine itself")
        if (value := self.value_if_any(key)) is not None:
            raise SettingError(f"{key} is already mounted, {value}", hint="make a new plan")

    def rehearse(self, key: str, found: Found) -> None:
        """Do nothing: a mounted file system can be unmounted."""

    def write(self, key: str, value: str) -> None:  # noqa: ARG002 — the port's signature
        """Mount it.

        Raises: ServerError with the message of mount(8); SettingError for an invalid value; AlreadyThereError
        if someone else has mounted it.
        """
        if value not in (WITH_CDP, WITHOUT_CDP):
            raise SettingError(
                f'"{value}" is not a way to mount {RESCTRL}', hint=f"use {WITH_CDP} or {WITHOUT_CDP}"
            )
        if (present := self.value_if_any(RESCTRL)) is not None:
            raise AlreadyThereError(f"{RESCTRL} is already mounted, {present}", hint="make a new plan")
        self.resctrl.mount(with_cdp=value == WITH_CDP)

    def restore(self, key: str, found: Found) -> None:
        """Unmount it, if it was not mounted before.

        Raises: RefusedError while it contains groups, or divides the caches of all tasks: that would be lost.
        """
        if found.value is not None or self.is_gone(found) or self.value_if_any(key) is None:
            return
        _require_nothing_to_lose(Path(self._locate(key)))
        self.resctrl.unmount()

    def equals(self, key: str, one: str | None, other: str | None) -> bool:  # noqa: ARG002 — the port's
        """Whether two mounts are the same."""
        return one == other

    def meets(self, key: str, wanted: str, effective: str) -> bool:  # noqa: ARG002 — the port's
        """Whether it is mounted as requested."""
        return wanted == effective

    def verify(self, key: str) -> str | None:
        """Return the mount's value, from the kernel's list of mounts."""
        return self.value_if_any(key)

    def value_if_any(self, key: str) -> str | None:
        """Return the mount's value; None if it is not mounted. Raises: PrivilegeError."""
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
            f"{RESCTRL} is not unmounted: other programs use it to divide or monitor caches",
            detail=f"groups: {', '.join(others)}",
            hint="when these groups are no longer needed, remove them with rmdir, then revert again",
        )
    if groups:
        raise RefusedError(
            f"{RESCTRL} is not unmounted: {GROUP} still exists",
            hint="pgdyno status shows which apply made it; revert that one first with pgdyno revert",
        )
    if divided := _divided(top):
        raise RefusedError(
            f"{RESCTRL} is not unmounted: someone else has divided the caches of all tasks",
            detail=f"{RESCTRL}{SCHEMATA} contains {divided}",
            hint="when that is no longer needed, write the full masks into it, then revert again",
        )


def _groups(top: Path) -> tuple[str, ...]:
    """Return the control groups, and the monitoring groups of the root and of each control group."""
    groups = [name for name in _directories(top) if name not in NO_GROUPS]
    places = [MONITORING, *(f"{name}/{MONITORING}" for name in groups)]
    return (*groups, *(f"{place}/{name}" for place in places for name in _directories(top / place)))


def _directories(place: Path) -> list[str]:
    return sorted(entry.name for entry in place.iterdir() if entry.is_dir()) if place.is_dir() else []


def _divided(top: Path) -> str | None:
    """Return the division for the tasks in no group; None if they have all of the caches."""
    file = top / SCHEMATA.lstrip("/")
    found = division_of(file.read_text(errors="replace")) if file.exists() else None
    if found is None:
        return None
    is_whole = all(set(masks.values()) == {_whole(top, cache)} for cache, masks in found.masks.items())
    return None if is_whole else str(found)


def _whole(top: Path, cache: str) -> int | None:
    """Return a cache's full mask; None if the kernel does not show it: then no mask counts as full."""
    with suppress(OSError, ValueError):
        return int((top / "info" / cache / "cbm_mask").read_text(), 16)
    return None
