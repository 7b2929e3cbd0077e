"""What a user types to undo changes without pgdyno, and the outcomes that people are shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgdyno.journal.statements import restore_statement, text_of
from pgdyno.model.errors import PgdynoError, StillChangedError
from pgdyno.model.guc import Guc
from pgdyno.model.journal import Outcome, Receipt


def restoring_statements(receipts: Iterable[Receipt]) -> tuple[str, ...]:
    """Return the SQL statements that restore what was found, in the order given."""
    return tuple(text_of(restore_statement(receipt.key, receipt.found.value)) for receipt in receipts)


def restoring_edits(receipts: Iterable[Receipt]) -> tuple[str, ...]:
    """Return what to do to ``postgresql.auto.conf`` when the server is down."""
    edits = []
    for receipt in receipts:
        if receipt.found.value is None:
            edits.append(f"delete the line {receipt.key} = '{receipt.change.value}'")
        else:
            edits.append(f"change the line {receipt.key} to '{receipt.found.value}'")
    return tuple(edits)


def still_changed(
    error: PgdynoError, receipts: Sequence[Receipt], *, is_server_up: bool, revert_command: str
) -> StillChangedError:
    """Return the error for a failure that leaves something changed, with the exact lines to mend it by hand.

    ``receipts`` are those of one server that are still open, newest first.
    """
    if is_server_up:
        statements = " ".join(restoring_statements(receipts))
        hint = f"{revert_command}; by hand: {statements} then SELECT pg_reload_conf(); or restart"
    else:
        directory = next((one.target.data_directory for one in receipts if one.target.data_directory), None)
        file = f"{directory}/postgresql.auto.conf" if directory else "postgresql.auto.conf"
        hint = (
            f"{revert_command}, or pgdyno revert --pgdata DIR where its files are; "
            f"by hand, in {file}: {'; '.join(restoring_edits(receipts))}; then start the server"
        )
    return StillChangedError(f"{error.message}; something is still changed", detail=error.detail, hint=hint)


def outcome(receipt: Receipt, guc: Guc | None = None) -> Outcome:
    """Return a receipt as it is shown; with ``guc`` values have readable units. No former file is in it."""
    return Outcome(
        key=receipt.key,
        lever=receipt.change.lever,
        before=_display(receipt.found.state.get("setting"), guc),
        found=receipt.found.value,
        wanted=receipt.change.value,
        effective=_display(receipt.effective, guc),
        state=receipt.state,
        note=receipt.note,
    )


def _display(value: str | None, guc: Guc | None) -> str | None:
    """Print a value in force, which is in the server's base unit, with a unit that people read."""
    return value if value is None or guc is None or not guc.unit else guc.display(value)
