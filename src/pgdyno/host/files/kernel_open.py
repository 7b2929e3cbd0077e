"""Open kernel files only; each target is checked before it can be written to.

A path is followed from the directory that it has to stay below. What it leads to is held without opening
it, and its file system asked for; only then is the same file opened through /proc/self/fd.

Source: Linux, openat2(2), fstatfs(2), open(2) on O_PATH; msr(4).

Python's ``os`` lacks openat2(2) and fstatfs(2). Where the kernel has no openat2 (before 5.6), a path is
walked name by name, and no link is followed.
"""

from __future__ import annotations

import ctypes
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
_OPENAT2 = 437  # on all machines that PostgreSQL has packages for
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08  # include/uapi/linux/openat2.h
_STATFS_BYTES = 512  # more than any machine's; its first member is the file system's number
_NUMBER = ctypes.c_uint if os.uname().machine.startswith("s390") else ctypes.c_long  # bits/statfs.h
_ATTEMPTS = 16  # arbitrary; it takes another one if anything is renamed or mounted meanwhile
_HOLD = os.O_PATH | os.O_CLOEXEC
_LIBC = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


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


def hold_beneath(directory: int, path: str, *, may_have_links: bool) -> int:
    """Return a descriptor (O_PATH) of a path below a directory.

    Links may lead from place to place below it, if at all, and never out of it.
    Raises: OSError, EXDEV or ELOOP for a path that leads away.
    """
    resolve = _BENEATH | _NO_MAGIC_LINKS | (0 if may_have_links else _NO_LINKS)
    for _ in range(_ATTEMPTS):
        try:
            return _openat2(directory, path, _OpenHow(_HOLD, 0, resolve))
        except OSError as error:
            if error.errno == errno.ENOSYS:
                break
            if error.errno != errno.EAGAIN:
                raise
    return walk_beneath(directory, path, may_have_links=may_have_links)


def walk_beneath(directory: int, path: str, *, may_have_links: bool) -> int:
    """Do the same without openat2.

    Links are resolved beforehand and none is followed any more: one that is put there meanwhile is an error.
    Raises: OSError.
    """
    names = Path(_resolved(directory, path)).parts if may_have_links else path.split("/")
    held = os.dup(directory)
    for name in names:
        if name in ("", ".", ".."):
            os.close(held)
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        try:
            inner = os.open(name, _HOLD | os.O_NOFOLLOW, dir_fd=held)
        finally:
            os.close(held)
        held = inner
    if stat.S_ISLNK(os.fstat(held).st_mode):
        os.close(held)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return held


def file_system_of(file: int) -> int:
    """Return the number of the file system that a file lies on. Raises: OSError."""
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _LIBC.fstatfs(file, buffer) != 0:
        raise _last_error("fstatfs")
    return int(_NUMBER.from_buffer(buffer).value)


def _openat2(directory: int, path: str, how: _OpenHow) -> int:
    size = ctypes.c_size_t(ctypes.sizeof(how))
    arguments = (ctypes.c_int(directory), os.fsencode(path), ctypes.byref(how), size)
    file: int = _LIBC.syscall(ctypes.c_long(_OPENAT2), *arguments)
    if file < 0:
        raise _last_error(path)
    return file


def _resolved(directory: int, path: str) -> str:
    """Return the path without links. Raises: OSError if it does not stay below the directory."""
    top = Path(f"/proc/self/fd/{directory}").readlink()
    real = os.path.realpath(f"{top}/{path}")
    if not real.startswith(f"{top}/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    return real.removeprefix(f"{top}/")


def _last_error(path: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), path)
