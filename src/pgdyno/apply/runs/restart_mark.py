"""Clear ``pending_restart`` marks where no setting waits for a restart any more.

PostgreSQL (15 to 18, ProcessConfigFileInternal) marks a setting when a file gets a new value for it, and
takes the mark back when the file's value is the running one again. When the entry just disappears from the
file and the running value is the built-in default, nobody takes the mark back until the server restarts.
So the entry is set to the running value, loaded, taken out, and loaded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pgdyno.apply.ledger.log import Journal
from pgdyno.apply.session.access import Steps
from pgdyno.apply.session.reload import reload_and_wait
from pgdyno.apply.session.session import Session
from pgdyno.apply.session.settings import FileEntry, read_file_entries, read_gucs
from pgdyno.apply.writers.alter_system import AlterSystemWriter
from pgdyno.apply.writers.auto_conf_file import AutoConfFileWriter
from pgdyno.model.plans.journal import Receipt
from pgdyno.postgres.alter_system import QUOTED_LISTS
from pgdyno.postgres.guc import Guc


def clear_stale_marks(
    journal: Journal,
    session: Session,
    writer: AlterSystemWriter,
    receipts: Iterable[Receipt],
    steps: Steps,
) -> None:
    """Clear the marks that our own changes left.

    Temporary values are in the journal before they are set.
    """
    with session.connect() as connection:
        entries = read_file_entries(connection).or_else(())
        gucs = read_gucs(connection)
    stale = [receipt for receipt in receipts if _is_stale(receipt, entries, gucs)]
    passing = [receipt for receipt in stale if _can_set(writer, receipt.key, gucs[receipt.key].setting)]
    if not passing:
        return
    for receipt in passing:
        value = gucs[receipt.key].setting
        journal.intend(receipt, value)
        steps(f"intended {receipt.key}")
        _set(writer, receipt.key, value)
        steps(f"passed {receipt.key}")
    reload_and_wait(session.connection, session.connect)
    steps("reloaded in passing")
    for receipt in passing:
        writer.restore(receipt.key, receipt.found)
        steps(f"restored {receipt.key} again")
    reload_and_wait(session.connection, session.connect)
    steps("reloaded again")


def _is_stale(receipt: Receipt, entries: Iterable[FileEntry], gucs: Mapping[str, Guc]) -> bool:
    """Whether the key is marked although it is in no file and has its original value."""
    guc = gucs.get(receipt.key)
    return (
        guc is not None
        and guc.pending_restart
        and receipt.found.value is None
        and receipt.found.state.get("pending_restart") == "off"
        and guc.source != "configuration file"
        and guc.setting == receipt.found.state.get("setting")
        and not any(entry.name.lower() == receipt.key.lower() for entry in entries)
    )


def _can_set(writer: AlterSystemWriter, key: str, value: str) -> bool:
    return writer.files is not None or not _is_empty_list(key, value)


def _set(writer: AlterSystemWriter, key: str, value: str) -> None:
    """Set the running value. ALTER SYSTEM has no way to say "empty list", a file has."""
    if writer.files is not None and _is_empty_list(key, value):
        AutoConfFileWriter(writer.files).write(key, value)
    else:
        writer.write(key, value)


def _is_empty_list(key: str, value: str) -> bool:
    return key.lower() in QUOTED_LISTS and not value.strip()
