"""Obstacles to reading and writing through io_uring."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class IoUringCause(StrEnum):
    """Obstacles to ``io_method=io_uring``."""

    NOT_COMPILED_IN = "not compiled in"
    FORBIDDEN = "forbidden by the kernel"  # by sysctl, seccomp or a security module; or without io_uring
    MEMLOCK = "too little memory may be locked"
    OPEN_FILES = "too few files may be opened"
    UNCLEAR = "the server does not accept it"


@dataclass(frozen=True)
class IoUringObstacle:
    """Reason why a server cannot use io_uring here, with the server's or kernel's message as evidence."""

    cause: IoUringCause
    evidence: str
    hint: str

    def __str__(self) -> str:
        """Return cause, evidence and remedy in one line."""
        return f"{self.cause} ({self.evidence}); {self.hint}"
