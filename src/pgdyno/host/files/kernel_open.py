"""Open kernel files only; each target is checked before it can be written to.

A path is followed from the directory that it has to stay below. What it leads to is held without opening it,
and its file system asked for; only then is the same file opened through /proc/self/fd.

Source: Linux, openat2(2), fstatfs(2), open(2) on O_PATH; msr(4).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from pgdyno.base.errors import RefusedError
from pgdyno.host.cache_allocation import RESCTRL
from pgdyno.host.files.kernel_path import file_system_of, hold_beneath
from pgdyno.host.kernel_file import display_name
from pgdyno.host.msr import Register

_PROCFS, _SYSFS, _DEBUGFS, _RESCTRLS = 0x9FA0, 0x62656572, 0x64626720, 0x7655821  # include/uapi/linux/magic.h
_OTHERS = MappingProxyType({"/proc/": _PROCFS, "/sys/kernel/debug/": _DEBUGFS, f"{RESCTRL}/": _RESCTRLS})
_MSR_MAJOR = 202  # Documentation/admin-guide/devices.txt
_LED_AWAY = {
    errno.EXDEV: "a link on its path leads elsewhere",
    errno.ELOOP: "there is a link on its path",
    errno.ENOTDIR: "a part of its path is no directory",
}


_MAY_HAVE_LINKS = MappingProxyType({"/proc/sys": False, "/proc/irq": False, "/sys": True})
"""The directories that files lie below. The links of /sys stay within it; the others have none."""


@dataclass(frozen=True)
class KernelTree:
    """The kernel's files below ``root``: ``/``, or a directory that looks like a machine, in tests.

    Such a directory has none of the kernel's file systems: there, only where a path leads is looked at.
    """

    root: Path

    @contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        """Open a file.

        Raises: OSError as open(2) does; RefusedError for what is no file of the kernel.
        """
        top = next((one for one in _MAY_HAVE_LINKS if path.startswith(f"{one}/")), None)
        if top is None:
            raise _refused(path, "it is not below /proc/sys, /proc/irq or /sys")
        below = path.removeprefix(f"{top}/")
        with _closing(
            os.open(self.root / top.lstrip("/"), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        ) as directory:
            held = _held(path, partial(hold_beneath, directory, below, may_have_links=_MAY_HAVE_LINKS[top]))
        with _closing(held):
            self._require_kernels(path, held)
            with _closing(_reopen(held, flags)) as file:
                yield file

    @contextmanager
    def opened_register(self, register: Register, flags: int) -> Iterator[int]:
        """Open the device of a CPU's registers.

        Raises: OSError as open(2) does; RefusedError for another device, or none.
        """
        device = self.root / register.device.lstrip("/")
        with _closing(os.open(device, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)) as held:
            found = os.fstat(held)
            numbers = (os.major(found.st_rdev), os.minor(found.st_rdev))
            is_device = stat.S_ISCHR(found.st_mode) and numbers == (_MSR_MAJOR, register.cpu)
            if self._is_a_machine and not is_device:
                raise _refused(register.device, f"it is not the device of CPU {register.cpu}'s registers")
            with _closing(_reopen(held, flags)) as file:
                yield file

    @property
    def _is_a_machine(self) -> bool:
        return self.root == Path("/")

    def _require_kernels(self, path: str, held: int) -> None:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise _refused(path, "it is not a file with a value")
        if self._is_a_machine and file_system_of(held) != _file_system_for(path):
            raise _refused(path, "something else is mounted there")


def _file_system_for(path: str) -> int:
    return next((number for top, number in _OTHERS.items() if path.startswith(top)), _SYSFS)


def _reopen(held: int, flags: int) -> int:
    return os.open(f"/proc/self/fd/{held}", flags | os.O_CLOEXEC)


def _held(path: str, hold: Callable[[], int]) -> int:
    """Return the result of ``hold``.

    Raises: RefusedError where the path leads away; OSError.
    """
    try:
        return hold()
    except OSError as error:
        if error.errno not in _LED_AWAY:
            raise
        raise _refused(path, _LED_AWAY[error.errno]) from error


@contextmanager
def _closing(file: int) -> Iterator[int]:
    try:
        yield file
    finally:
        os.close(file)


def _refused(path: str, why: str) -> RefusedError:
    return RefusedError(
        f'"{display_name(path)}" is not a file of this kernel', detail=f"{path}: {why}; nothing was written"
    )
