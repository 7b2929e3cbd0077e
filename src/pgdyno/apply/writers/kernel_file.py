"""Change a running kernel's parameters by writing its files.

Values last until the machine is restarted. A receipt contains the boot id at the time of the change: after a
restart the value is gone, and there is nothing to restore.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import PrivilegeError, SettingError
from pgdyno.base.ports import Found
from pgdyno.host.files.kernel_open import KernelTree
from pgdyno.host.kernel_file import BOOT_ID, COUPLED, display_name, is_same, reset_by, value_in

BOOT, COUNTERPART = "boot_id", "counterpart"  # keys of Found.state
_LIMIT_BYTES = 4096  # one page, the kernel's maximum for one value
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class KernelFileWriter:
    """Reads, writes and restores kernel files below ``root``, which is ``/`` except in tests."""

    root: Path = Path("/")
    kind: str = "kernel"

    def read(self, key: str) -> Found:
        """Return the value, the boot id, and related values that the kernel resets when it is set."""
        value = self.value(key)
        state = {"setting": value, BOOT: self._boot(), **self._set_anew_by(key)}
        return Found(value, state | ({COUNTERPART: self.value(COUPLED[key])} if key in COUPLED else {}))

    @property
    def tree(self) -> KernelTree:
        """A tree that opens only kernel files."""
        return KernelTree(self.root)

    def check(self, key: str) -> None:
        """Refuse a file that cannot be written, before any change. Opening it changes nothing.

        Raises: SettingError if it does not exist; PrivilegeError if it is not writable; RefusedError if it is
        not a kernel file.
        """
        try:
            with self.tree.opened(key, os.O_WRONLY):
                pass
        except OSError as error:
            raise _not_opened(key, error) from error

    def rehearse(self, key: str, found: Found) -> None:
        """Write the original value again: a value that the kernel would reject later must not be replaced.

        Raises: SettingError, PrivilegeError; RefusedError, without writing, if it is not a kernel file.
        """
        if "\n" in (self._text(key) or "").rstrip("\n"):
            raise _not_restorable(key, "it shows several lines, but only one would be written")
        if found.value == found.state.get(COUNTERPART) == "0":
            names = f"{display_name(key)} and {display_name(COUPLED[key])}"
            raise _not_restorable(key, f"{names} are both 0: writing one may not change the other")
        try:
            self._put_back(key, found)
        except SettingError as error:
            raise _not_restorable(key, f"{error.message}: {error.detail}") from error

    def write(self, key: str, value: str) -> None:
        """Write the value.

        Raises: SettingError if the kernel rejects it; PrivilegeError; RefusedError.
        """
        try:
            with self.tree.opened(key, os.O_WRONLY | os.O_TRUNC) as file:  # like a shell's >
                os.write(file, value.encode() + b"\n")  # the kernel accepts a value completely or not at all
        except OSError as error:
            raise _not_written(key, value, error) from error

    def restore(self, key: str, found: Found) -> None:
        """Restore the original value, and values that the kernel reset along with it.

        Values that are already in place are not written. After a restart of the machine, nothing is restored.
        """
        if found.value is None or self.is_gone(found):
            return
        if not is_same(key, self.value(key), found.value):
            self._put_back(key, found)
        for path, value in reset_with_key(found).items():
            if not is_same(path, self.value(path), value):
                self.write(path, value)

    def verify(self, key: str) -> str | None:
        """Return the kernel's current value, read again."""
        return self.value(key)

    def equals(self, key: str, one: str | None, other: str | None) -> bool:
        """Whether two values mean the same."""
        return one == other if one is None or other is None else is_same(key, one, other)

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether the kernel shows the requested value."""
        return is_same(key, wanted, effective)

    def is_gone(self, found: Found) -> bool:
        """Whether the machine was restarted since, which discarded the written value."""
        return found.state.get(BOOT) not in (None, self._boot())

    def is_on_the_way(self, now: str, one: str, other: str) -> bool:  # noqa: ARG002 — see HugePagePoolWriter
        """Whether an interrupted write of ``other`` over ``one`` may leave ``now``."""
        return False

    def value(self, key: str) -> str:
        """Return the value of a file. Raises: SettingError if it does not exist; PrivilegeError."""
        value = self.value_if_any(key)
        if value is None:
            raise _no_such_file(key)
        return value

    def value_if_any(self, key: str) -> str | None:
        """Return the value; None if the file does not exist, for example because a device was removed.

        Raises: PrivilegeError; RefusedError if it is not a kernel file.
        """
        text = self._text(key)
        return None if text is None else value_in(text)

    def _text(self, key: str) -> str | None:
        """Return a file's text; None if absent. Raises: PrivilegeError, RefusedError."""
        try:
            with self.tree.opened(key, os.O_RDONLY) as file:
                return os.read(file, _LIMIT_BYTES).decode(errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PrivilegeError(f"could not read {display_name(key)}", detail=error.strerror) from error

    def _boot(self) -> str:
        """Return the boot id. Raises: PrivilegeError."""
        try:
            return self._locate(BOOT_ID).read_text().strip()
        except OSError as error:
            raise PrivilegeError(
                "could not read the boot id", detail=f"{BOOT_ID}: {error.strerror}"
            ) from error

    def _put_back(self, key: str, found: Found) -> None:
        """Write the original value.

        A 0 means that the counterpart is in use instead, so that one is written.
        """
        if found.value == "0" and COUNTERPART in found.state:
            self.write(COUPLED[key], found.state[COUNTERPART])  # this sets the key itself to 0
        else:
            self.write(key, found.value or "")

    def _set_anew_by(self, key: str) -> dict[str, str]:
        files = (file for pattern in reset_by(key) for file in sorted(self.root.glob(pattern.lstrip("/"))))
        paths = (f"/{file.relative_to(self.root)}" for file in files)
        return {path: self.value(path) for path in paths}

    def _locate(self, key: str) -> Path:
        return self.root / key.lstrip("/")


def reset_with_key(found: Found) -> Mapping[str, str]:
    """Return the original values of files that the kernel resets with the key, by path."""
    return {path: value for path, value in found.state.items() if path.startswith("/")}


def _no_such_file(key: str) -> SettingError:
    return SettingError(f'this kernel has no "{display_name(key)}"', detail=f"{key} does not exist")


def _not_opened(key: str, error: OSError) -> SettingError | PrivilegeError:
    if error.errno == errno.ENOENT:
        return _no_such_file(key)
    return PrivilegeError(
        f"cannot change {display_name(key)}",
        detail=f"{key}: {error.strerror}",
        hint="run pgdyno as root, on the machine itself rather than in a container",
    )


def _not_written(key: str, value: str, error: OSError) -> SettingError | PrivilegeError:
    if error.errno in (*_NOT_ALLOWED, errno.ENOENT):
        return _not_opened(key, error)
    return SettingError(f'the kernel rejects "{value}" for {display_name(key)}', detail=error.strerror)


def _not_restorable(key: str, why: str) -> SettingError:
    return SettingError(
        f"{display_name(key)} is not changed, because it could not be restored",
        detail=why,
        hint="omit it",
    )
