"""Records of the journal: receipts, their states, and results of apply, status and revert.

    written ──> applied ──> verified ──┐
       │           │            │      ├──> reverted    the original value is restored and verified
       │           └──> failed ─┼──────┤
       └────────────────────────┘      └──> released    changed by others after pgdyno, and left to them

A receipt is *open* until it is reverted or released: something may still be changed. With a receipt that is
only written, the change may or may not have been made; reverting it is correct in either case.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pgdyno.base.ports import Found
from pgdyno.model.plans.plan import ACCOUNT, HOST_KINDS, PERSISTED_FILE, Change, Finding

Value = TypeVar("Value", str, str | None)
"""The value of a change. For a file that sets kernel values at boot, it is the whole text of the file."""
_DIGITS = 12  # of a checksum shown in place of a text: the first digits of sha256sum(1)'s output


class ReceiptState(StrEnum):
    """The progress of a change."""

    WRITTEN = "written"
    APPLIED = "applied"
    VERIFIED = "verified"
    FAILED = "failed"
    REVERTED = "reverted"
    RELEASED = "released"


class OnDrift(StrEnum):
    """How a revert treats a key that another user or program changed after pgdyno."""

    SKIP = "skip"  # leave the key and its receipt alone; the revert is incomplete
    OVERWRITE = "overwrite"  # restore the value found before pgdyno's change
    KEEP = "keep"  # keep the new value, and close the receipt


@dataclass(frozen=True)
class Target:
    """The server or machine that a change was made on.

    ``identity`` is a server's system identifier, or a host's machine id. A standby has the system identifier
    of its primary, often even the same paths: ``data_directory`` and ``machine`` (a hash of the machine id)
    distinguish them if known. ``address`` is for display only.
    """

    kind: str  # "server" or "host"
    identity: str
    data_directory: str | None
    machine: str | None
    address: str

    def is_same_as(self, other: Target) -> bool:
        """Whether both are the same target, by the fields known to both. The address is ignored."""
        pairs = ((self.data_directory, other.data_directory), (self.machine, other.machine))
        return (self.kind, self.identity) == (other.kind, other.identity) and all(
            one == another for one, another in pairs if one is not None and another is not None
        )


@dataclass(frozen=True)
class Receipt:
    """The value found before a change, and the change's state. ``change.value`` is the requested one.

    ``effective`` was read back after the change, from another source. ``interims`` are temporary values set
    by a revert, or values that the kernel derived from pgdyno's: finding one of them is not drift.
    ``server`` is the server that the plan for a change on the machine was made for; None if a trial or
    ``setup`` made the change. ``restart_command`` restarts the target; empty if apply got none.
    """

    id: str
    apply_id: str
    created: str  # ISO 8601, UTC
    made_by: str
    target: Target
    change: Change
    found: Found
    state: ReceiptState = ReceiptState.WRITTEN
    effective: str | None = None
    note: str | None = None
    interims: tuple[str, ...] = ()
    server: Target | None = None
    restart_command: tuple[str, ...] = ()
    is_being_restored: bool = False

    @property
    def key(self) -> str:
        """The changed setting or file."""
        return self.change.key

    @property
    def is_on_host(self) -> bool:
        """Whether it changes the machine itself rather than a server."""
        return self.change.kind in HOST_KINDS

    @property
    def is_of_trial(self) -> bool:
        """Whether the machine was changed for a trial, which restores it at its end."""
        return self.is_of_machine_alone and self.change.kind != ACCOUNT

    @property
    def is_of_machine_alone(self) -> bool:
        """Whether the machine was changed, but not for a server's plan."""
        return self.is_on_host and self.server is None

    @property
    def is_unfinished(self) -> bool:
        """Whether the change was interrupted or failed; the current value is then unknown."""
        return self.state in (ReceiptState.WRITTEN, ReceiptState.APPLIED, ReceiptState.FAILED)

    @property
    def is_settled(self) -> bool:
        """Whether the value was verified and no revert has begun: any other value is drift."""
        return self.state is ReceiptState.VERIFIED and not self.is_being_restored

    @property
    def is_open(self) -> bool:
        """Whether something may still be changed."""
        return self.state not in (ReceiptState.REVERTED, ReceiptState.RELEASED)


@dataclass(frozen=True)
class Outcome:
    """One change after apply or revert. ``found`` None means that the key was not set."""

    key: str
    lever: str
    before: str | None  # the value in force before the change, as displayed
    found: str | None
    wanted: str
    effective: str | None
    state: ReceiptState
    note: str | None = None


def restart_options(command: Sequence[str]) -> str:
    """Return the options that allow pgdyno to restart the server; a placeholder for an unknown command."""
    known = shlex.quote(shlex.join(command)) if command else "'…'"
    return f"--allow-restart --restart-command {known}"


@dataclass(frozen=True)
class ApplyResult:
    """The result of an apply, or of its dry run. ``apply_id`` None: nothing was to be done.

    ``revert_command`` undoes it, with ``restart_options`` if that takes a restart; ``findings`` are those of
    the plan about the server.
    """

    apply_id: str | None
    target: str
    outcomes: tuple[Outcome, ...]
    statements: tuple[str, ...]
    restarts: int
    is_dry_run: bool = False
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    revert_command: str = "pgdyno revert"
    restart_options: str = restart_options(())


@dataclass(frozen=True)
class Drift:
    """A key that was changed by others after pgdyno; ``now`` None means that they removed it.

    ``later`` is the server whose plan changed it again, with a separate receipt.
    """

    key: str
    found: str | None
    wanted: str
    now: str | None
    later: str | None = None


@dataclass(frozen=True)
class OtherJournal:
    """A journal of another user on this host. ``open_receipts`` None means that it may not be read.

    ``undoing`` is the command that undoes its changes; None if it is unknown, or must not be suggested.
    """

    directory: str
    open_receipts: int | None
    undoing: str | None = None


@dataclass(frozen=True)
class RevertResult:
    """The result of a revert. ``pending_restart``: keys whose original value takes effect after a restart.

    ``other_journals`` are searched if there was nothing to revert: the changes may be in one of them.
    """

    target: str
    outcomes: tuple[Outcome, ...]
    statements: tuple[str, ...]
    drifted: tuple[Drift, ...] = ()
    pending_restart: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()
    restarts: int = 0
    is_dry_run: bool = False
    notes: tuple[str, ...] = ()
    other_journals: tuple[OtherJournal, ...] = ()
    revert_command: str = "pgdyno revert"
    restart_options: str = restart_options(())

    @property
    def is_complete(self) -> bool:
        """Whether all requested changes are undone. If not, the exit code is 3."""
        return not (self.drifted or self.pending_restart or self.damage)


@dataclass(frozen=True)
class StatusEntry:
    """An open receipt, and its current state.

    ``effective`` is the value in force now; None if the server was not queried. ``drift`` describes later
    changes by others.
    """

    apply_id: str
    created: str
    made_by: str
    target: str
    key: str
    lever: str
    found: str | None
    wanted: str
    state: ReceiptState
    effective: str | None = None
    drift: str | None = None


@dataclass(frozen=True)
class StatusReport:
    """Applied changes on this host's targets, newest last."""

    journal: str
    entries: tuple[StatusEntry, ...]
    damage: tuple[str, ...] = ()
    other_journals: tuple[OtherJournal, ...] = ()


def shown(kind: str, value: Value) -> Value:
    """Return a value for display: the checksum of a file, any other value unchanged."""
    return checksum(value) if kind == PERSISTED_FILE else value


def checksum(text: str | None) -> str:
    """Return the checksum of a text for display; None: no file."""
    return "no file" if text is None else f"sha256 {hashlib.sha256(as_bytes(text)).hexdigest()[:_DIGITS]}"


def as_text(content: bytes) -> str:
    """Return a file's content as a value, without loss for any content."""
    return content.decode(errors="surrogateescape")


def as_bytes(text: str) -> bytes:
    """Return a value as the content of its file, the inverse of ``as_text``."""
    return text.encode(errors="surrogateescape")
