"""Run programs without a network: in a separate network namespace, where the only interface is down.

Unix sockets in the file system still work.
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
    """Return ``argv`` wrapped to run without a network; it works only if ``can_leave_network()``."""
    return [*_wrapping(), *argv]


@cache
def can_leave_network() -> bool:
    """Whether this user can create network namespaces; containers may forbid it."""
    try:
        done = subprocess.run([*_wrapping(), "true"], capture_output=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _wrapping() -> tuple[str, ...]:
    return _AS_ROOT if os.geteuid() == 0 else _AS_USER
