"""Mounts the file system in which the kernel lets caches be divided, and unmounts it.

Mounted it changes nothing yet: all tasks are in one group, which has all of the caches. But with CDP, code
and data then count as two caches, for which the processor has half as many groups; that can be chosen only
when it is mounted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.journal.files.resctrl import Resctrl
from pgdyno.journal.writers.kernel_file import BOOT, KernelFileWriter
from pgdyno.model.errors import PrivilegeError, RefusedError, SettingError
from pgdyno.model.hosts.cache_allocation import RESCTRL, WITH_CDP, WITHOUT_CDP
from pgdyno.model.plans.plan import CACHE_MOUNT
from pgdyno.model.ports import Found

_NO_GROUPS = frozenset({"info", "mon_groups", "mon_data"})


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
        """Mount it. Raises: ServerError with the words of mount(8); SettingError for another value."""
        if value not in (WITH_CDP, WITHOUT_CDP):
            raise SettingError(f'"{value}" is no way to mount {RESCTRL}', hint=f"{WITH_CDP} or {WITHOUT_CDP}")
        self.resctrl.mount(with_cdp=value == WITH_CDP)

    def restore(self, key: str, found: Found) -> None:
        """Unmount it, if it was not mounted before. Raises: RefusedError while others have groups in it."""
        if found.value is not None or self.is_gone(found) or self.value_if_any(key) is None:
            return
        if groups := self._groups(key):
            raise RefusedError(
                f"{key} is not unmounted: others divide the caches by now",
                detail=f"groups: {', '.join(groups)}",
                hint="when they need their groups no longer, remove them with rmdir, and revert again",
            )
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

    def _groups(self, key: str) -> tuple[str, ...]:
        directories = (entry.name for entry in Path(self._locate(key)).iterdir() if entry.is_dir())
        return tuple(sorted(set(directories) - _NO_GROUPS))
