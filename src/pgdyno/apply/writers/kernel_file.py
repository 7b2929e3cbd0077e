"""Changes a running kernel's values, by writing the files in which it shows them.

They last until the machine is restarted: a receipt holds the boot that it was written in, and what was
written in an earlier one is gone, so that there is nothing to restore.
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
from pgdyno.host.kernel_file import BOOT_ID, COUPLED, display_name, is_same, set_anew_by, value_in

BOOT, COUNTERPART = "boot_id", "counterpart"  # keys of Found.state
_LIMIT_BYTES = 4096  # a page, which is what the kernel gives at most for one value
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class KernelFileWriter:
    """Reads, writes and restores files of the kernel below ``root``, which is ``/`` but in tests."""

    root: Path = Path("/")
    kind: str = "kernel"

    def read(self, key: str) -> Found:
        """Return the value, its boot id, and related values that setting it would lose."""
        value = self.value(key)
        state = {"setting": value, BOOT: self._boot(), **self._set_anew_by(key)}
        return Found(value, state | ({COUNTERPART: self.value(COUPLED[key])} if key in COUPLED else {}))

    @property
    def tree(self) -> KernelTree:
        """Tree that opens files of the kernel only."""
        return KernelTree(self.root)

    def check(self, key: str) -> None:
        """Refuse a file that cannot be written, before anything is changed. Opening it changes nothing.

        Raises: SettingError if there is none; PrivilegeError if it is closed to us; RefusedError if it is
        not the kernel's.
        """
        try:
            with self.tree.opened(key, os.O_WRONLY):
                pass
        except OSError as error:
            raise _not_opened(key, error) from error

    def rehearse(self, key: str, found: Found) -> None:
        """Write the current value again.

        A value that the kernel does not accept must not be replaced.

        Raises: SettingError, PrivilegeError; RefusedError for what is not the kernel's, unwritten.
        """
        if "\n" in (self._text(key) or "").rstrip("\n"):
            raise _cannot_come_back(key, "it shows several lines, of which one would be written")
        if found.value == found.state.get(COUNTERPART) == "0":
            names = f"{display_name(key)} and {display_name(COUPLED[key])}"
            raise _cannot_come_back(key, f"{names} are both 0: writing one may leave the other as it is")
        try:
            self._put_back(key, found)
        except SettingError as error:
            raise _cannot_come_back(key, f"{error.message}: {error.detail}") from error

    def write(self, key: str, value: str) -> None:
        """Write the value.

        Raises: SettingError if the kernel does not take it; PrivilegeError; RefusedError.
        """
        try:
            with self.tree.opened(key, os.O_WRONLY | os.O_TRUNC) as file:  # as a shell's > does
                os.write(file, value.encode() + b"\n")  # the kernel takes a value whole or not at all
        except OSError as error:
            raise _not_written(key, value, error) from error

    def restore(self, key: str, found: Found) -> None:
        """Restore the original value, and values that the kernel reset along with it.

        Values that are already in place are not written.

        After a restart of the machine there is nothing to put back.
        """
        if found.value is None or self.is_gone(found):
            return
        if not is_same(key, self.value(key), found.value):
            self._put_back(key, found)
        for path, value in set_anew(found).items():
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
        """Whether writing ``other`` over ``one`` may leave ``now`` when it is interrupted."""
        return False

    def value(self, key: str) -> str:
        """Return the value of a file. Raises: SettingError if there is none; PrivilegeError."""
        value = self.value_if_any(key)
        if value is None:
            raise _no_such_file(key)
        return value

    def value_if_any(self, key: str) -> str | None:
        """Return the value; None where there is no file: a device may be gone.

        Raises: PrivilegeError; RefusedError for what is not the kernel's.
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
        """Return the boot's id, which is read and never written. Raises: PrivilegeError."""
        try:
            return self._locate(BOOT_ID).read_text().strip()
        except OSError as error:
            raise PrivilegeError(
                "could not read the boot's id", detail=f"{BOOT_ID}: {error.strerror}"
            ) from error

    def _put_back(self, key: str, found: Found) -> None:
        """Write the original value.

        The kernel shows a 0 for a value that its counterpart has disabled.
        """
        if found.value == "0" and COUNTERPART in found.state:
            self.write(COUPLED[key], found.state[COUNTERPART])  # which sets the key itself to 0
        else:
            self.write(key, found.value or "")

    def _set_anew_by(self, key: str) -> dict[str, str]:
        files = (file for pattern in set_anew_by(key) for file in sorted(self.root.glob(pattern.lstrip("/"))))
        paths = (f"/{file.relative_to(self.root)}" for file in files)
        return {path: self.value(path) for path in paths}

    def _locate(self, key: str) -> Path:
        return self.root / key.lstrip("/")


def set_anew(found: Found) -> Mapping[str, str]:
    """Return the original values of files that the kernel resets with the key.

    They are listed by path.
    """
    return {path: value for path, value in found.state.items() if path.startswith("/")}


def _no_such_file(key: str) -> SettingError:
    return SettingError(f'this kernel has no "{display_name(key)}"', detail=f"there is no file {key}")


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
    return SettingError(f'the kernel does not take "{value}" for {display_name(key)}', detail=error.strerror)


def _cannot_come_back(key: str, why: str) -> SettingError:
    return SettingError(
        f"{display_name(key)} is not changed, because it could not be changed back",
        detail=why,
        hint="leave it out",
    )
