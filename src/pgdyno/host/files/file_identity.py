"""User identity under which this process opens, creates or renames files.

Only one thread changes its identity: setfsuid(2) and setfsgid(2) act on the thread that calls them, whereas
``os.seteuid`` changes all threads, some of which sample or log as root meanwhile. With another user's
identity the thread has none of root's rights over files: capabilities(7), "effect of user ID changes".
Supplementary groups stay root's; so whatever is opened has to belong to that user as well. A thread that is
started meanwhile would keep the identity: none is.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

_LIBC = ctypes.CDLL(None)
_ASK = -1  # no identity of this number can be set: the call only returns the present one


@contextmanager
def acting_as(uid: int, gid: int) -> Iterator[None]:
    """As root, have another user's rights over files, in this thread; otherwise keep one's own.

    Raises: OSError if the kernel does not let this process become that user.
    """
    if os.geteuid() != 0 or uid == 0:
        yield
        return
    former = _LIBC.setfsuid(_ASK), _LIBC.setfsgid(_ASK)
    try:
        _become(uid, gid)
        yield
    finally:
        _become(*former)


def _become(uid: int, gid: int) -> None:
    """Set both numbers; the calls report no error, so they are asked afterwards."""
    _LIBC.setfsuid(uid)
    _LIBC.setfsgid(gid)
    if (_LIBC.setfsuid(_ASK), _LIBC.setfsgid(_ASK)) != (uid, gid):
        raise OSError(errno.EPERM, f"the kernel does not let this process act as user {uid}, group {gid}")
