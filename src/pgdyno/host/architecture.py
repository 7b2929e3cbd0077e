"""Machine architectures, named as by ``uname -m``: x86_64, aarch64."""

from __future__ import annotations

import platform


def is_foreign(machine: str) -> bool:
    """Whether programs for ``machine`` need an emulator here."""
    return machine not in {"", platform.machine()}
