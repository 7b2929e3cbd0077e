"""``pgdyno status``: applied changes, their authors and times, and their present state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.ledger.places import candidate_directories, other_journals
from pgdyno.apply.runs.host_run import drift_on_host
from pgdyno.apply.runs.server_writers import running_writers
from pgdyno.apply.runs.undo import find_drift
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.session import reading_session
from pgdyno.apply.session.settings import read_gucs
from pgdyno.apply.session.target import is_this_machine
from pgdyno.apply.writers.alter_system import AlterSystemWriter
from pgdyno.apply.writers.program import ProgramWriter
from pgdyno.base.errors import PrivilegeError, SettingError
from pgdyno.base.ports import HostWriter
from pgdyno.model.plans.journal import Receipt, ReceiptState, StatusEntry, StatusReport, shown
from pgdyno.model.plans.plan import PERSISTED_FILE
from pgdyno.postgres.guc import Guc

_FORMER_VALUE = "it has its original value"


def journal_status(access: ServerAccess, *, candidates: Iterable[Path] | None = None) -> StatusReport:
    """Return the journal's changes for every target, and the machine's present values.

    No server is contacted.

    ``candidates``: possible directories of other journals; None: the default ones on this host.
    """
    contents = read_journal(access.journal_directory)
    places = candidate_directories() if candidates is None else candidates
    newest = {receipt.id for receipt in _newest_per_key(contents.open)}
    return StatusReport(
        journal=str(access.journal_directory),
        entries=tuple(
            _on_host(one, access.host_writers[one.change.kind])
            if is_this_machine(one.target) and one.id in newest
            else _entry(one)
            for one in contents.open
        ),
        damage=contents.damage,
        other_journals=other_journals(access.journal_directory, places),
    )


def server_status(access: ServerAccess, *, candidates: Iterable[Path] | None = None) -> StatusReport:
    """Return the journal's changes, with present values for those on this server.

    Takes no lock, and so works while another pgdyno is busy. Changes nothing.
    """
    report = journal_status(access, candidates=candidates)
    receipts = read_journal(access.journal_directory).open
    with reading_session(access.look) as session:
        gucs = read_gucs(session.connection)
        writers = running_writers(session)
        present = {
            receipt.id: _present(receipt, writers[receipt.change.kind], gucs)
            for receipt in _newest_per_key(receipts)
            if receipt.target.is_same_as(session.target)
        }
    entries = (present.get(one.id) or entry for one, entry in zip(receipts, report.entries, strict=True))
    return replace(report, entries=tuple(entries))


def _newest_per_key(receipts: Iterable[Receipt]) -> tuple[Receipt, ...]:
    """Return the newest receipt of each key: it hides the state of older ones."""
    return tuple({(receipt.target, receipt.key): receipt for receipt in receipts}.values())


def _on_host(receipt: Receipt, writer: HostWriter) -> StatusEntry:
    """Return a receipt's entry with the machine's present value."""
    try:
        now = writer.value_if_any(receipt.key)
        drift = _drift_on_host(receipt, writer, now)
        return replace(_entry(receipt), effective=shown(receipt.change.kind, now), drift=drift)
    except (PrivilegeError, SettingError) as error:
        return replace(_entry(receipt), drift=f"unknown: {error.message}")


def _drift_on_host(receipt: Receipt, writer: HostWriter, now: str | None) -> str | None:
    if writer.is_gone(receipt.found):
        has_it = writer.equals(receipt.key, now, receipt.change.value)
        return f"the machine was restarted, {'but still has this value' if has_it else 'which discarded it'}"
    if drift_on_host(writer, receipt) is not None:
        done = "edited by someone else" if receipt.change.kind == PERSISTED_FILE else f"set to {now}"
        return "its file no longer exists" if now is None else f"it was {done}"
    if receipt.is_settled and not writer.equals(receipt.key, now, receipt.change.value):
        return _FORMER_VALUE
    return None  # the receipt's state already shows an interrupted or failed apply


def _present(
    receipt: Receipt, writer: AlterSystemWriter | ProgramWriter, gucs: Mapping[str, Guc]
) -> StatusEntry:
    if not isinstance(writer, AlterSystemWriter):
        return _programs(receipt, writer)
    guc = gucs.get(receipt.key)
    if guc is None:
        return replace(_entry(receipt), drift="the server no longer has this setting")
    return replace(_entry(receipt), effective=guc.display(), drift=_drift(receipt, writer, guc))


def _programs(receipt: Receipt, writer: ProgramWriter) -> StatusEntry:
    """Return a receipt's entry with the server's running programs, and any drift of their selection."""
    try:
        running = writer.verify(receipt.key)
        drift = find_drift(writer, receipt)
    except PrivilegeError as error:
        return replace(_entry(receipt), drift=f"unknown: {error.message}")
    entry = replace(_entry(receipt), effective=running)
    if drift is not None:
        now = drift.now
        return replace(entry, drift="it no longer exists" if now is None else f"it was set to {now}")
    if receipt.is_settled and not writer.meets(receipt.key, receipt.change.value, running or ""):
        return replace(entry, drift="it is not in force: the server runs other programs")
    return entry


def _drift(receipt: Receipt, writer: AlterSystemWriter, guc: Guc) -> str | None:
    try:
        drift = find_drift(writer, receipt)
        now = writer.read(receipt.key).value
    except (PrivilegeError, SettingError) as error:
        return f"unknown: {error.message}"
    if drift is not None:
        return "it was removed from postgresql.auto.conf" if now is None else f"it was set to {now}"
    if receipt.state is not ReceiptState.VERIFIED:
        return None  # the receipt's state already shows an interrupted or failed apply
    if not writer.equals(receipt.key, now, receipt.change.value):
        return _FORMER_VALUE
    return _not_in_force(receipt, writer, guc)


def _not_in_force(receipt: Receipt, writer: AlterSystemWriter, guc: Guc) -> str | None:
    if guc.pending_restart:
        return "another value waits for a restart"
    if not writer.meets(receipt.key, receipt.change.value, guc.setting):
        return f"it is not in force: set {_where(guc)}"
    return None


def _where(guc: Guc) -> str:
    return guc.source if guc.source != "configuration file" else str(guc.sourcefile or "in a file")


def _entry(receipt: Receipt) -> StatusEntry:
    return StatusEntry(
        apply_id=receipt.apply_id,
        created=receipt.created,
        made_by=receipt.made_by,
        target=receipt.target.address,
        key=receipt.key,
        lever=receipt.change.lever,
        found=shown(receipt.change.kind, receipt.found.value),
        wanted=shown(receipt.change.kind, receipt.change.value),
        state=receipt.state,
    )
