"""User identity under which this process opens, creates or renames files.

setfsuid(2) and setfsgid(2) change the identity of the calling thread only. ``os.seteuid`` would change all
threads, some of which sample or log as root at the same time. With another user's identity the thread has
none of root's rights over files: capabilities(7), "effect of user ID changes". The supplementary groups
remain root's, so an opened file must also belong to that user. A thread started under the identity would keep
it: none is started.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

_LIBC = ctypes.CDLL(None)
_QUERY = -1  # an invalid id: the call changes nothing and returns the current one


@contextmanager
def acting_as(uid: int, gid: int) -> Iterator[None]:
    """As root, give this thread another user's rights over files; for other users, change nothing.

    Raises: OSError if the kernel does not allow the change.
    """
    if os.geteuid() != 0 or uid == 0:
        yield
        return
    former = _LIBC.setfsuid(_QUERY), _LIBC.setfsgid(_QUERY)
    try:
        _become(uid, gid)
        yield
    finally:
        _become(*former)


def _become(uid: int, gid: int) -> None:
    """Set both ids, and query them afterwards, since the calls report no error."""
    _LIBC.setfsuid(uid)
    _LIBC.setfsgid(gid)
    if (_LIBC.setfsuid(_QUERY), _LIBC.setfsgid(_QUERY)) != (uid, gid):
        raise OSError(errno.EPERM, f"the kernel does not allow acting as user {uid}, group {gid}")
