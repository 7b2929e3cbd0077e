"""Ports: outside services of the pure core and the use cases, as Protocols.

They are implemented by what reaches outside (``host/``, ``postgres/``, ``apply/``), and handed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Found:
    """The state before a change: enough to restore exactly that, never a default.

    ``value`` None means the key was not set at all, so that restoring removes it again. ``state`` holds
    whatever else the writer needs, as JSON-able data (e.g. a file's former bytes in base64, coupled keys).
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
        """Return the present state. Must not change anything."""
        ...

    def write(self, key: str, value: str) -> None:
        """Make the change durable. Called only after the receipt is on disk."""
        ...

    def restore(self, key: str, found: Found) -> None:
        """Restore the state that ``read`` returned. Idempotent: restoring twice is restoring once."""
        ...

    def verify(self, key: str) -> str | None:
        """Return the effective value from another source than the one written."""
        ...

    def equals(self, key: str, one: str | None, other: str | None) -> bool:
        """Whether two values that ``read`` or a plan may give mean the same for this key."""
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
        """Try to restore the present value: a value that cannot be restored must not be changed.

        Raises: SettingError, PrivilegeError.
        """
        ...

    def value_if_any(self, key: str) -> str | None:
        """Return the present value; None if there is none. Raises: PrivilegeError."""
        ...

    def is_gone(self, found: Found) -> bool:
        """Whether the change went by itself, because the machine was restarted."""
        ...

    def is_on_the_way(self, now: str, one: str, other: str) -> bool:
        """Whether writing ``other`` over ``one`` may leave ``now`` when it is interrupted."""
        ...


class Restarter(Protocol):
    """Restarts a server, or starts it if it is down."""

    def restart(self) -> None:
        """Return when a restarted server takes connections.

        Raises: ServerStartError if it does not within its limit.
        """
        ...


class Progress(Protocol):
    """Says where we are and how long it will take; on stderr, or nowhere."""

    def step(self, message: str) -> None:
        """Announce the current activity."""
        ...

    def advance(self, done_s: float, total_s: float) -> None:
        """Report work done and expected in seconds of wall time."""
        ...
