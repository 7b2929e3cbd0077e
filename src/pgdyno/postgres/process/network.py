"""Programs without any network: in a namespace of their own, whose only interface is down.

Sockets in the file system work as before.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache

_TIMEOUT_S = 10.0
_AS_ROOT = ("unshare", "--net", "--")
_AS_USER = ("unshare", "--user", "--map-current-user", "--net", "--")


def without_network(argv: Sequence[str]) -> list[str]:
    """Return ``argv`` wrapped so that it has no network. ``can_leave_network`` says whether that works."""
    return [*_wrapping(), *argv]


@cache
def can_leave_network() -> bool:
    """Whether this user can run programs in a network namespace of their own; containers may forbid it."""
    try:
        done = subprocess.run([*_wrapping(), "true"], capture_output=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _wrapping() -> tuple[str, ...]:
    return _AS_ROOT if os.geteuid() == 0 else _AS_USER
