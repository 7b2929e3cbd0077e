"""Commands to make or undo changes by hand, without pgdyno, and displayed outcomes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from pgdyno.apply.configuration.auto_conf import restore_statement, set_statement, text_of
from pgdyno.apply.writers.account import FILES_BELOW
from pgdyno.apply.writers.kernel_file import COUNTERPART, reset_with_key
from pgdyno.base.errors import PgdynoError, StillChangedError
from pgdyno.base.ports import Found
from pgdyno.host import own_account
from pgdyno.host.cache_allocation import GROUP, OF_GROUP, RESCTRL, WITH_CDP, Division, division_of
from pgdyno.host.kernel_file import COUPLED
from pgdyno.host.msr import register_of
from pgdyno.model.plans.journal import Outcome, Receipt, shown
from pgdyno.model.plans.plan import (
    ACCOUNT,
    CACHE_KINDS,
    HOST_KINDS,
    PERSISTED_FILE,
    PG_CTL_OPTIONS,
    PROGRAM_KINDS,
    Change,
)
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.pg_ctl_conf import NAME


def making_statement(change: Change) -> str:
    """Return the command that makes a change: SQL for a setting, a line for root's shell for the machine."""
    if change.kind in PROGRAM_KINDS:
        return _choosing(change, change.value)
    if change.kind == PERSISTED_FILE:
        return _replacing(change.key, change.value)
    if change.kind == ACCOUNT:
        return shlex.join(own_account.MAKING)
    if change.kind in CACHE_KINDS:
        return dividing_statement(change.key, change.value)
    if change.kind in HOST_KINDS:
        return _writing(change.key, change.value)
    return text_of(set_statement(change.key, change.value))


def restoring_statements(receipts: Iterable[Receipt]) -> tuple[str, ...]:
    """Return the statements that restore the original values, in the given order."""
    return tuple(map(_restoring_statement, receipts))


def _restoring_statement(receipt: Receipt) -> str:
    found = receipt.found
    if receipt.change.kind in PROGRAM_KINDS:
        return _choosing(receipt.change, found.value or "")
    if not receipt.is_on_host:
        return text_of(restore_statement(receipt.key, found.value))
    if receipt.change.kind == PERSISTED_FILE:
        return _replacing(receipt.key, found.value)
    if receipt.change.kind == ACCOUNT:
        below = shlex.quote(found.state[FILES_BELOW])
        return f"find {below} -user {own_account.NAME} -delete; {shlex.join(own_account.REMOVING)}"
    if receipt.change.kind in CACHE_KINDS:
        return restoring_division(receipt.key, found.value)
    return _restoring_files(receipt.key, found)


def _restoring_files(key: str, found: Found) -> str:
    if found.value == "0" and COUNTERPART in found.state:
        return _writing(COUPLED[key], found.state[COUNTERPART])
    files = {key: found.value or "", **reset_with_key(found)}
    return "; ".join(_writing(path, value) for path, value in files.items())


def _writing(path: str, value: str) -> str:
    if (register := register_of(path)) is not None:
        return f"wrmsr -p {register.cpu} {register.number:#x} {shlex.quote(value)}"
    return f"echo {shlex.quote(value)} > {shlex.quote(path)}"


def _choosing(change: Change, value: str) -> str:
    """Return the line of a file, or the shell command, that selects the programs for the next start."""
    if change.kind == PG_CTL_OPTIONS:
        return f"in {change.key}: {NAME} = '{value}'"
    return f"ln -sfn {shlex.quote(value)} {shlex.quote(change.key)}"


def _replacing(path: str, text: str | None) -> str:
    """Return the shell command that writes a text to a file; None: that removes the file."""
    return f"rm -f {path}" if text is None else f"printf %s {shlex.quote(text)} > {path}"


def restoring_edits(receipts: Iterable[Receipt]) -> tuple[str, ...]:
    """Return the file edits that restore the original values of a stopped server."""
    edits = []
    for receipt in receipts:
        if receipt.change.kind in PROGRAM_KINDS:
            edits.append(_restoring_statement(receipt))
        elif receipt.found.value is None:
            edits.append(f"delete the line {receipt.key} = '{receipt.change.value}'")
        else:
            edits.append(f"change the line {receipt.key} to '{receipt.found.value}'")
    return tuple(edits)


def still_changed(
    error: PgdynoError, receipts: Sequence[Receipt], *, is_server_up: bool, revert_command: str
) -> StillChangedError:
    """Return the error for a failure that leaves something changed, with the commands to restore it by hand.

    ``receipts``: one server's open receipts, newest first.
    """
    on_server = [receipt for receipt in receipts if not receipt.is_on_host]
    on_host = [receipt for receipt in receipts if receipt.is_on_host]
    hint = revert_command
    if on_server and is_server_up:
        statements = " ".join(restoring_statements(on_server))
        hint += f"; by hand: {statements} then {_activation(on_server)}"
    elif on_server:
        directory = next((one.target.data_directory for one in on_server if one.target.data_directory), None)
        settings = [one for one in on_server if one.change.kind not in PROGRAM_KINDS]
        file = f"in {directory}/postgresql.auto.conf" if directory else "in postgresql.auto.conf"
        where = f"{file}: " if settings else ""
        programs = [one for one in on_server if one.change.kind in PROGRAM_KINDS]
        edits = "; ".join(restoring_edits([*settings, *programs]))
        hint += (
            ", or pgdyno revert --pgdata DIR on the host with its files; "
            f"by hand, {where}{edits}; then start the server"
        )
    if on_host:
        hint += f"; by hand, as root: {'; '.join(restoring_statements(on_host))}"
    return StillChangedError(f"{error.message}; something is still changed", detail=error.detail, hint=hint)


def _activation(receipts: Iterable[Receipt]) -> str:
    is_restart_due = any(receipt.change.kind in PROGRAM_KINDS for receipt in receipts)
    return "restart" if is_restart_due else "SELECT pg_reload_conf(); or restart"


def outcome(receipt: Receipt, guc: Guc | None = None) -> Outcome:
    """Return a receipt for display, without file contents; with ``guc``, values have readable units."""
    kind = receipt.change.kind
    return Outcome(
        key=receipt.key,
        lever=receipt.change.lever,
        before=_display(receipt.found.state.get("setting"), guc),
        found=shown(kind, receipt.found.value),
        wanted=shown(kind, receipt.change.value),
        effective=_display(receipt.effective, guc),
        state=receipt.state,
        note=receipt.note,
    )


def _display(value: str | None, guc: Guc | None) -> str | None:
    """Return an effective value, which is in the server's base unit, with a readable unit."""
    return value if value is None or guc is None or not guc.unit else guc.display(value)


def dividing_statement(key: str, value: str) -> str:
    """Return the line for root's shell that changes the division of caches."""
    if key == RESCTRL:
        options = "-o cdp " if value == WITH_CDP else ""
        return f"mount -t resctrl {options}resctrl {RESCTRL}"
    division = division_of(value)
    if division is None or key != OF_GROUP:
        return _writing_division(key, () if division is None else division.lines)
    return "; ".join((f"mkdir {GROUP}", _writing_division(key, division.lines), *_moving(division)))


def restoring_division(key: str, found: str | None) -> str:
    """Return the line that restores the original division; ``found`` None: there was no group or mount."""
    if key == RESCTRL:
        return f"umount {RESCTRL}"
    if key == OF_GROUP:
        return f"rmdir {GROUP}" if found is None else f": {GROUP} existed before"
    division = division_of(found or "")
    return _writing_division(key, () if division is None else division.lines)


def _writing_division(key: str, lines: Iterable[str]) -> str:
    return f"printf '%s\\n' {shlex.join(lines)} > {key}"


def _moving(division: Division) -> tuple[str, ...]:
    """Return the shell commands that move a postmaster and its child processes; empty without a server."""
    if division.data_directory is None:
        return ()
    file = shlex.quote(f"{division.data_directory}/postmaster.pid")
    of_server = f"postmaster=$(head -n 1 {file})"
    each = f"for task in $postmaster $(pgrep -P $postmaster); do echo $task > {GROUP}/tasks; done"
    return of_server, each
