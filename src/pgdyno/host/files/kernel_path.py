"""System calls that Python's ``os`` lacks: openat2(2), and fstatfs(2).

Where the kernel has no openat2 (before 5.6), a path is walked name by name, and no link is followed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from pathlib import Path

_OPENAT2 = 437  # on all machines that PostgreSQL has packages for
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08  # include/uapi/linux/openat2.h
_STATFS_BYTES = 512  # more than any machine's; its first member is the file system's number
_NUMBER = ctypes.c_uint if os.uname().machine.startswith("s390") else ctypes.c_long  # bits/statfs.h
_ATTEMPTS = 16  # arbitrary; it takes another one if anything is renamed or mounted meanwhile
_HOLD = os.O_PATH | os.O_CLOEXEC

_LIBC = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


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
