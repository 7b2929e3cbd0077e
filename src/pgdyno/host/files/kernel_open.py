"""Open kernel files only; each target is checked before it is opened for writing.

A path is resolved below the directory that must contain it. The target is first opened with O_PATH, and its
file system checked; only then is the same file opened through /proc/self/fd.

Source: Linux, openat2(2), fstatfs(2), open(2) on O_PATH; msr(4).

Python's ``os`` lacks openat2(2) and fstatfs(2). On kernels without openat2 (before 5.6), a path is walked
name by name, and no link is followed.
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
_WHY_OUTSIDE = {
    errno.EXDEV: "a symbolic link in the path leads elsewhere",
    errno.ELOOP: "the path contains a symbolic link",
    errno.ENOTDIR: "a component of the path is not a directory",
}
_MAY_HAVE_LINKS = MappingProxyType({"/proc/sys": False, "/proc/irq": False, "/sys": True})
"""The directories with kernel files, and whether they have symbolic links. Links in /sys stay within it."""
_OPENAT2 = 437  # system call number on all architectures with PostgreSQL packages
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08  # include/uapi/linux/openat2.h
_STATFS_BYTES = 512  # larger than on any architecture; the first member, f_type, is the file system's number
_NUMBER = ctypes.c_uint if os.uname().machine.startswith("s390") else ctypes.c_long  # bits/statfs.h
_ATTEMPTS = 16  # arbitrary; openat2 fails with EAGAIN after a concurrent rename or mount
_HOLD = os.O_PATH | os.O_CLOEXEC
_LIBC = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@dataclass(frozen=True)
class KernelTree:
    """The kernel's files below ``root``: ``/``, or a directory that imitates a machine, in tests.

    Such a directory has no kernel file systems: only the target of a path is checked there.
    """

    root: Path

    @contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        """Open a file.

        Raises: OSError as open(2) does; RefusedError if it is not a kernel file.
        """
        top = next((one for one in _MAY_HAVE_LINKS if path.startswith(f"{one}/")), None)
        if top is None:
            raise _refused(path, "not below /proc/sys, /proc/irq or /sys")
        below = path.removeprefix(f"{top}/")
        with _closing(
            os.open(self.root / top.lstrip("/"), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        ) as directory:
            held = _held(path, partial(hold_beneath, directory, below, may_have_links=_MAY_HAVE_LINKS[top]))
        with _closing(held):
            self._require_kernel_file(path, held)
            with _closing(_reopen(held, flags)) as file:
                yield file

    @contextmanager
    def opened_register(self, register: Register, flags: int) -> Iterator[int]:
        """Open the device of a CPU's registers.

        Raises: OSError as open(2) does; RefusedError if it is not that device.
        """
        device = self.root / register.device.lstrip("/")
        with _closing(os.open(device, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)) as held:
            found = os.fstat(held)
            numbers = (os.major(found.st_rdev), os.minor(found.st_rdev))
            is_device = stat.S_ISCHR(found.st_mode) and numbers == (_MSR_MAJOR, register.cpu)
            if self._is_real_root and not is_device:
                raise _refused(register.device, f"not the register device of CPU {register.cpu}")
            with _closing(_reopen(held, flags)) as file:
                yield file

    @property
    def _is_real_root(self) -> bool:
        return self.root == Path("/")

    def _require_kernel_file(self, path: str, held: int) -> None:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise _refused(path, "not a regular file")
        if self._is_real_root and file_system_of(held) != _file_system_for(path):
            raise _refused(path, "on a different file system than the kernel's")


def _file_system_for(path: str) -> int:
    return next((number for top, number in _OTHERS.items() if path.startswith(top)), _SYSFS)


def _reopen(held: int, flags: int) -> int:
    return os.open(f"/proc/self/fd/{held}", flags | os.O_CLOEXEC)


def _held(path: str, hold: Callable[[], int]) -> int:
    """Return the result of ``hold``.

    Raises: RefusedError if the path leads elsewhere; OSError.
    """
    try:
        return hold()
    except OSError as error:
        if error.errno not in _WHY_OUTSIDE:
            raise
        raise _refused(path, _WHY_OUTSIDE[error.errno]) from error


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

    Links are followed only if ``may_have_links``, and must stay below the directory.
    Raises: OSError, with EXDEV or ELOOP for a path that leads out of it.
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
    """Return the descriptor of ``hold_beneath`` without openat2.

    Links are resolved first, and none is followed afterwards: a link created in between is an error.
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
    """Return the type number of a file's file system. Raises: OSError."""
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
    """Return the path with links resolved. Raises: OSError if it leads out of the directory."""
    top = Path(f"/proc/self/fd/{directory}").readlink()
    real = os.path.realpath(f"{top}/{path}")
    if not real.startswith(f"{top}/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    return real.removeprefix(f"{top}/")


def _last_error(path: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), path)
