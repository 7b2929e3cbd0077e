"""Records of the journal: receipts, their states, and results of apply, status and revert.

    written ──> applied ──> verified ──┐
       │           │            │      ├──> reverted    what was found is back, and read back
       │           └──> failed ─┼──────┤
       └────────────────────────┘      └──> released    somebody changed it after us, and it was left to them

A receipt is *open* until it is reverted or released: something may still be changed. A receipt that is
only written says that the change may or may not have been made; reverting it is right either way.
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
"""Of a change. That of a file which sets kernel values at boot is the file's whole text."""
_DIGITS = 12  # of a checksum, which people see in place of a text: the beginning of what sha256sum(1) prints


class ReceiptState(StrEnum):
    """How far a change has come."""

    WRITTEN = "written"
    APPLIED = "applied"
    VERIFIED = "verified"
    FAILED = "failed"
    REVERTED = "reverted"
    RELEASED = "released"


class OnDrift(StrEnum):
    """Handling of a key that another user or program changed after us, in a revert."""

    SKIP = "skip"  # leave it and its receipt alone; the revert is incomplete
    OVERWRITE = "overwrite"  # restore what was found before our change
    KEEP = "keep"  # leave it, and close the receipt: it is theirs now


@dataclass(frozen=True)
class Target:
    """The server or machine that a change was made on.

    ``identity`` is a server's system identifier, or a host's machine id. A standby has its primary's system
    identifier, often even its paths: ``data_directory`` and ``machine`` (a hash of the machine id) tell
    them apart where they are known. ``address`` is for people.
    """

    kind: str  # "server" or "host"
    identity: str
    data_directory: str | None
    machine: str | None
    address: str

    def is_same_as(self, other: Target) -> bool:
        """Whether both are the same thing, as far as both know. The address does not count."""
        pairs = ((self.data_directory, other.data_directory), (self.machine, other.machine))
        return (self.kind, self.identity) == (other.kind, other.identity) and all(
            one == another for one, another in pairs if one is not None and another is not None
        )


@dataclass(frozen=True)
class Receipt:
    """The value found before a change, and the change's state. ``change.value`` is the requested one.

    ``effective`` is what was read back from another source after the change. ``interims`` are values that a
    revert has set in passing, or that the kernel made of ours: finding one of them is not somebody else's
    doing. ``server`` is the one whose plan asked for a change on the machine; None if a trial did, or
    ``setup``. ``restart_command`` restarts the target; nothing if apply was not given one.
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
        """The setting or file that is changed."""
        return self.change.key

    @property
    def is_on_host(self) -> bool:
        """Whether it is about the machine itself rather than a server."""
        return self.change.kind in HOST_KINDS

    @property
    def is_of_trial(self) -> bool:
        """Whether the machine was changed for a trial, which restores it at its end."""
        return self.is_of_machine_alone and self.change.kind != ACCOUNT

    @property
    def is_of_machine_alone(self) -> bool:
        """Whether the machine was changed, and for no server's plan."""
        return self.is_on_host and self.server is None

    @property
    def is_unfinished(self) -> bool:
        """Whether the change was interrupted or failed, so that the present value is unknown."""
        return self.state in (ReceiptState.WRITTEN, ReceiptState.APPLIED, ReceiptState.FAILED)

    @property
    def is_settled(self) -> bool:
        """Whether the value was seen in force and no revert has begun: any other value is drift."""
        return self.state is ReceiptState.VERIFIED and not self.is_being_restored

    @property
    def is_open(self) -> bool:
        """Whether something may still be changed."""
        return self.state not in (ReceiptState.REVERTED, ReceiptState.RELEASED)


@dataclass(frozen=True)
class Outcome:
    """One change as apply or revert left it. ``found`` None means that the key was not set at all."""

    key: str
    lever: str
    before: str | None  # what was in force before the change, as people write it
    found: str | None
    wanted: str
    effective: str | None
    state: ReceiptState
    note: str | None = None


def restart_options(command: Sequence[str]) -> str:
    """Return the options that a user adds to let a command restart the server, which may not be known."""
    known = shlex.quote(shlex.join(command)) if command else "'…'"
    return f"--allow-restart --restart-command {known}"


@dataclass(frozen=True)
class ApplyResult:
    """The result of an apply, or of its dry run. ``apply_id`` None: there was nothing to do.

    ``revert_command`` is what a user types to undo it, with ``restart_options`` if it takes a restart;
    ``findings`` are the plan's, about the server.
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
    """A key that was changed by others after us; ``now`` None means that they removed it.

    ``later`` is the server whose plan has changed it again, with a receipt of its own.
    """

    key: str
    found: str | None
    wanted: str
    now: str | None
    later: str | None = None


@dataclass(frozen=True)
class OtherJournal:
    """A journal of another user on this host. ``open_receipts`` None means that it may not be read.

    ``undoing`` is the command that undoes its changes; None if it is not known, or not ours to give.
    """

    directory: str
    open_receipts: int | None
    undoing: str | None = None


@dataclass(frozen=True)
class RevertResult:
    """The result of a revert. ``pending_restart``: keys whose original value waits for a restart.

    ``other_journals`` are looked for if nothing was to revert: the changes may be in one of them.
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
        """Whether every change to revert is undone. If not, the exit code is 3."""
        return not (self.drifted or self.pending_restart or self.damage)


@dataclass(frozen=True)
class StatusEntry:
    """An open receipt, and its present state.

    ``effective`` is the value in force now; None if the server was not asked. ``drift`` says in words what
    somebody else did since.
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
    """Return a value of a change of this kind as people see it; only files are not shown as they are."""
    return checksum(value) if kind == PERSISTED_FILE else value


def checksum(text: str | None) -> str:
    """Return the checksum of a text; None stands for no file."""
    return "no file" if text is None else f"sha256 {hashlib.sha256(as_bytes(text)).hexdigest()[:_DIGITS]}"


def as_text(content: bytes) -> str:
    """Return a file's content as a value, without loss for any content."""
    return content.decode(errors="surrogateescape")


def as_bytes(text: str) -> bytes:
    """Return the content that a value stands for."""
    return text.encode(errors="surrogateescape")
