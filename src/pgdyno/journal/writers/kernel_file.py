"""Changes a running kernel's values, by writing the files in which it shows them.

They last until the machine is restarted: a receipt holds the boot that it was written in, and what was
written in an earlier one is gone, so that there is nothing to restore.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from pgdyno.model.errors import PrivilegeError, SettingError
from pgdyno.model.kernel_file import BOOT_ID, COUPLED, display_name, is_same, value_in
from pgdyno.model.ports import Found

BOOT, COUNTERPART = "boot_id", "counterpart"  # keys of Found.state
_LIMIT_BYTES = 4096  # a page, which is what the kernel gives at most for one value
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class KernelFileWriter:
    """Reads, writes and restores files of the kernel below ``root``, which is ``/`` but in tests."""

    root: Path = Path("/")
    kind: str = "kernel"

    def read(self, key: str) -> Found:
        """Return the value, the boot that it belongs to, and what would be lost by setting it."""
        value = self.value(key)
        state = {"setting": value, BOOT: self.value(BOOT_ID)}
        return Found(value, state | ({COUNTERPART: self.value(COUPLED[key])} if key in COUPLED else {}))

    def check(self, key: str) -> None:
        """Refuse a file that cannot be written, before anything is changed.

        Raises: SettingError if there is none; PrivilegeError if it is closed to us.
        """
        path = self._locate(key)
        if not path.exists():
            raise _no_such_file(key)
        if not os.access(path, os.W_OK):
            is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
            raise _not_writable(key, "its file system is mounted read-only" if is_read_only else None)

    def write(self, key: str, value: str) -> None:
        """Write the value. Raises: SettingError if the kernel does not take it; PrivilegeError."""
        try:
            file = os.open(self._locate(key), os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            raise _failed(key, value, error) from error
        try:
            content = value.encode() + b"\n"
            os.write(file, content)  # the kernel takes a value whole or not at all
            os.ftruncate(file, len(content))
        except OSError as error:
            raise _failed(key, value, error) from error
        finally:
            os.close(file)

    def restore(self, key: str, found: Found) -> None:
        """Put back what was found, unless the machine has been restarted since."""
        if found.value is None or self.is_gone(found):
            return
        if is_same(key, self.value(key), found.value):
            return
        counterpart = found.state.get(COUNTERPART)
        if counterpart is not None and found.value == "0":
            self.write(COUPLED[key], counterpart)  # which sets the key itself to 0
        else:
            self.write(key, found.value)

    def verify(self, key: str) -> str | None:
        """Return what the kernel shows now, read anew."""
        return self.value(key)

    def equals(self, key: str, one: str | None, other: str | None) -> bool:
        """Whether two values mean the same."""
        return one == other if one is None or other is None else is_same(key, one, other)

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether the kernel shows what was asked for."""
        return is_same(key, wanted, effective)

    def is_gone(self, found: Found) -> bool:
        """Whether the machine was restarted since, so that the kernel has forgotten what was written."""
        return found.state.get(BOOT) not in (None, self.value(BOOT_ID))

    def value(self, key: str) -> str:
        """Return the value of a file. Raises: SettingError if there is none; PrivilegeError."""
        try:
            with self._locate(key).open("rb", buffering=0) as file:
                return value_in((file.read(_LIMIT_BYTES) or b"").decode(errors="replace"))
        except FileNotFoundError as error:
            raise _no_such_file(key) from error
        except OSError as error:
            raise PrivilegeError(f"could not read {display_name(key)}", detail=error.strerror) from error

    def _locate(self, key: str) -> Path:
        return self.root / key.lstrip("/")


def _no_such_file(key: str) -> SettingError:
    return SettingError(f'this kernel has no "{display_name(key)}"', detail=f"there is no file {key}")


def _not_writable(key: str, why: str | None) -> PrivilegeError:
    return PrivilegeError(
        f"cannot change {display_name(key)}",
        detail=why or f"{key} may not be written by this user",
        hint="run pgdyno as root, on the machine itself rather than in a container",
    )


def _failed(key: str, value: str, error: OSError) -> SettingError | PrivilegeError:
    if error.errno in _NOT_ALLOWED:
        return _not_writable(key, error.strerror)
    return SettingError(f'the kernel does not take "{value}" for {display_name(key)}', detail=error.strerror)
