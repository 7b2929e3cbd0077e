"""Common sequence of every kind of change: receipts, changes, reading back.

Each function reports the name of every step, so that tests can kill the process after it. While an
earlier run is unfinished, changes are refused: the present values may be partly changed.
"""

from __future__ import annotations

import getpass
import os
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pgdyno.apply.ledger.log import Contents, Journal
from pgdyno.apply.session.access import Steps
from pgdyno.apply.session.target import is_this_machine
from pgdyno.base.errors import (
    AlreadyThereError,
    PgdynoError,
    RefusedError,
    ServerError,
    StorageError,
    UsageError,
)
from pgdyno.base.ports import ChangeWriter, Found
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.journal import Drift, Receipt, ReceiptState, Target
from pgdyno.model.plans.plan import PROGRAM_KINDS, Change

_STOP_AND_START = "the restart command must stop, then start it: pg_ctl restart starts the old programs"


@dataclass(frozen=True)
class Undone:
    """Result of an undo: receipts, newest first; skipped drift; pending restarts."""

    receipts: tuple[Receipt, ...]
    drifted: tuple[Drift, ...]
    pending_restart: tuple[str, ...]
    restarts: int


@dataclass(frozen=True)
class Prepared:
    """A change and its original state."""

    change: Change
    found: Found


def prepare(changes: Iterable[Change], writers: Mapping[str, ChangeWriter]) -> tuple[Prepared, ...]:
    """Read the original values of the keys to change.

    Raises: UsageError for a kind of change without a writer.
    """
    prepared = []
    for change in changes:
        if change.kind not in writers:
            raise UsageError(
                f'pgdyno cannot apply changes of kind "{change.kind}"', detail=f"key {change.key}"
            )
        prepared.append(Prepared(change, writers[change.kind].read(change.key)))
    return tuple(prepared)


def new_apply_id() -> str:
    """Return an id that sorts by time and is unique on this host."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def receipts_for(
    apply_id: str,
    target: Target,
    prepared: Sequence[Prepared],
    server: Target | None = None,
    restart_command: tuple[str, ...] = (),
) -> tuple[Receipt, ...]:
    """Return a receipt for each change. ``server``: for changes of the machine, the plan's server."""
    return tuple(
        Receipt(
            id=f"{apply_id}/{target.kind}-{number:02d}",
            apply_id=apply_id,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            made_by=f"{_user()}@{socket.gethostname()}, process {os.getpid()}",
            target=target,
            change=one.change,
            found=one.found,
            server=server,
            restart_command=restart_command,
        )
        for number, one in enumerate(prepared, start=1)
    )


def write_receipts(journal: Journal, receipts: Iterable[Receipt], steps: Steps) -> None:
    """Write all receipts, or none. Changes may only be made after this returns."""
    receipts = tuple(receipts)
    journal.add(*receipts)
    for receipt in receipts:
        steps(f"receipt {receipt.key}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container the user may have no name
        return f"uid {os.getuid()}"


def make_changes(
    journal: Journal, writers: Mapping[str, ChangeWriter], receipts: Iterable[Receipt], steps: Steps
) -> tuple[Receipt, ...]:
    """Make the changes in the given order. The first failure is recorded, and ends the sequence.

    If someone else has made a change first, its receipt is closed, because pgdyno must not undo it.
    """
    applied = []
    for receipt in receipts:
        try:
            writers[receipt.change.kind].write(receipt.key, receipt.change.value)
        except AlreadyThereError as error:
            journal.advance(receipt, ReceiptState.RELEASED, note=error.message)
            raise
        except PgdynoError as error:
            journal.advance(receipt, ReceiptState.FAILED, note=error.message)
            raise
        steps(f"changed {receipt.key}")
        applied.append(journal.advance(receipt, ReceiptState.APPLIED))
        steps(f"applied {receipt.key}")
    return tuple(applied)


def read_back(
    journal: Journal, writers: Mapping[str, ChangeWriter], receipts: Iterable[Receipt], steps: Steps
) -> tuple[Receipt, ...]:
    """Read every change back, from a different source than the one written, and record the effective value.

    Raises: ServerError naming every change that is not in force.
    """
    verified, failures = [], []
    for receipt in receipts:
        writer = writers[receipt.change.kind]
        effective = writer.verify(receipt.key)
        if effective is not None and writer.meets(receipt.key, receipt.change.value, effective):
            verified.append(journal.advance(receipt, ReceiptState.VERIFIED, effective=effective))
        else:
            failures.append(f"{receipt.key}: requested {receipt.change.value}, in force {effective}")
            journal.advance(receipt, ReceiptState.FAILED, effective=effective, note="not in force")
        steps(f"verified {receipt.key}")
    if failures:
        has_programs = any(one.change.kind in PROGRAM_KINDS for one in receipts)
        raise ServerError(
            f"{len(failures)} changes did not take effect",
            detail="; ".join(failures),
            hint=_STOP_AND_START if has_programs else None,
        )
    return tuple(verified)


REVERT_HOST = "pgdyno revert --host-only"


def check_unfinished(contents: Contents, server: Target | None, revert_command: str) -> None:
    """Refuse to continue after an interrupted apply or trial, on this machine or on ``server``.

    A running trial holds the journal's lock, so only a preview can encounter one here.
    Raises: RefusedError; StorageError if the journal is damaged.
    """
    if contents.damage:
        raise StorageError(
            "the journal is damaged, so no changes can be recorded in it",
            detail="; ".join(contents.damage),
            hint=f"{revert_command} --all restores the readable entries; then move the journal away",
        )
    for receipt in contents.open:
        if is_this_machine(receipt.target) and (receipt.is_unfinished or receipt.is_of_trial):
            is_ours = server is not None and receipt.server is not None and receipt.server.is_same_as(server)
            raise _interrupted(receipt, "machine", revert_command if is_ours else REVERT_HOST)
        if server is not None and receipt.is_unfinished and receipt.target.is_same_as(server):
            raise _interrupted(receipt, "server", revert_command)


def _interrupted(receipt: Receipt, place: str, revert_command: str) -> RefusedError:
    what = "trial" if receipt.is_of_trial else "setup" if receipt.is_of_machine_alone else "apply"
    return RefusedError(
        f"an earlier {what} ({receipt.apply_id}) was interrupted on this {place}",
        detail=f"{display_name(receipt.key)} may or may not be changed",
        hint=f"{revert_command}, then try again",
    )
