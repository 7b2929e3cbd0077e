"""Ports: external services of the pure core and the use cases, as Protocols.

They are implemented by the packages that do I/O (``host/``, ``postgres/``, ``apply/``), and injected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Found:
    """The state before a change: sufficient to restore exactly that state, never a default.

    ``value`` None means that the key was not set; restoring removes it again. ``state`` holds all other data
    that the writer needs, suitable for JSON (e.g. a file's former bytes in base64, coupled keys).
    """

    value: str | None
    state: dict[str, str]


class ChangeWriter(Protocol):
    """Reads, writes and restores the keys of one kind of change. One writer serves every lever."""

    @property
    def kind(self) -> str:
        """The kind of change, as in ``Change.kind``."""
        ...

    def read(self, key: str) -> Found:
        """Return the current state. Must not change anything."""
        ...

    def write(self, key: str, value: str) -> None:
        """Make the change durable. Called only after the receipt is on disk."""
        ...

    def restore(self, key: str, found: Found) -> None:
        """Restore the state that ``read`` returned. Idempotent."""
        ...

    def verify(self, key: str) -> str | None:
        """Return the effective value, read from a different source than the one written."""
        ...

    def equals(self, key: str, one: str | None, other: str | None) -> bool:
        """Whether two values, from ``read`` or from a plan, are equivalent for this key."""
        ...

    def meets(self, key: str, wanted: str, effective: str) -> bool:
        """Whether ``effective``, as ``verify`` returned it, satisfies ``wanted``."""
        ...


class HostWriter(ChangeWriter, Protocol):
    """Writes settings of the whole machine, which a reboot may reset."""

    def check(self, key: str) -> None:
        """Refuse impossible changes before any is made. Changes nothing.

        Raises: SettingError, PrivilegeError, RefusedError.
        """
        ...

    def rehearse(self, key: str, found: Found) -> None:
        """Try to restore the current value: a value that cannot be restored must not be changed.

        Raises: SettingError, PrivilegeError.
        """
        ...

    def value_if_any(self, key: str) -> str | None:
        """Return the current value; None if there is none. Raises: PrivilegeError."""
        ...

    def is_gone(self, found: Found) -> bool:
        """Whether the change has vanished because the machine was rebooted."""
        ...

    def is_on_the_way(self, now: str, one: str, other: str) -> bool:
        """Whether an interrupted write of ``other`` over ``one`` may leave the value ``now``."""
        ...


class Restarter(Protocol):
    """Restarts a server, or starts it if it is down."""

    def restart(self) -> None:
        """Restart the server, and return once it accepts connections.

        Raises: ServerStartError if it does not within its time limit.
        """
        ...


class Progress(Protocol):
    """Reports the current step and the remaining time; on stderr, or nowhere."""

    def step(self, message: str) -> None:
        """Announce the current activity."""
        ...

    def advance(self, done_s: float, total_s: float) -> None:
        """Report elapsed and expected total wall time in seconds."""
        ...
