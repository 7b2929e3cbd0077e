"""The results of apply, status and revert as terminal text. Pure: records in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pgdyno.base.text import aligned, counted
from pgdyno.host.cache_allocation import GROUP, OF_GROUP
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.journal import (
    ApplyResult,
    Drift,
    OtherJournal,
    Outcome,
    ReceiptState,
    RevertResult,
    StatusEntry,
    StatusReport,
)
from pgdyno.model.plans.plan import Finding

_UNSET = "not set"


def apply_text(result: ApplyResult) -> str:
    """Return the effects of an apply, or of its dry run."""
    found = _findings(result.findings)
    if result.is_dry_run:
        lines = [*_statements(result.statements, result.target, result.restarts)]
    elif not result.outcomes:
        lines = ["Nothing to change."]
    else:
        restarted = "after a restart" if result.restarts else "without a restart"
        lines = [f"{counted(len(result.outcomes), 'change')} in force on {result.target}, {restarted}", ""]
        outcomes = result.outcomes
        rows = [(display_name(one.key), _arrow(one.before, one.wanted), _effective(one)) for one in outcomes]
        lines += aligned(rows, "    ")
        restart = f" {result.restart_options}" if result.restarts else ""
        lines += ["", f"undo: {result.revert_command}{restart}"]
    return _text([*found, *lines, *_notes(result.notes)])


def revert_text(result: RevertResult) -> str:
    """Return the effects of a revert, or of its dry run."""
    lines: list[str] = []
    if not result.outcomes:
        lines = [f"Nothing to revert on {result.target}.", *_others(result.other_journals)]
    elif result.is_dry_run:
        lines = [*_statements(result.statements, result.target, result.restarts)]
    else:
        done = [one for one in result.outcomes if one.state is ReceiptState.REVERTED]
        restarted = ", after a restart" if result.restarts else ""
        lines = [f"{counted(len(done), 'change')} undone on {result.target}{restarted}", ""]
        rows = [(display_name(one.key), _arrow(one.wanted, one.effective), one.note or "") for one in done]
        lines += aligned(rows, "    ")
    lines += [line for drift in result.drifted for line in _drift(drift, result.revert_command)]
    if result.pending_restart:
        lines += ["", f"Waiting for a restart: {', '.join(result.pending_restart)}"]
        command = f"{result.revert_command} {result.restart_options}"
        lines += [f"    the files are restored; {command} puts them into effect"]
    return _text([*lines, *_damage(result.damage), *_notes(result.notes)])


def status_text(report: StatusReport) -> str:
    """Return the applied changes, grouped by apply, oldest first."""
    lines: list[str] = []
    for apply_id in dict.fromkeys(entry.apply_id for entry in report.entries):
        lines += [*_apply([entry for entry in report.entries if entry.apply_id == apply_id]), ""]
    if not report.entries:
        lines = ["Nothing is applied.", ""]
    lines.append(f"journal: {report.journal}")
    lines += _others(report.other_journals)
    return _text([*lines, *_damage(report.damage)])


def _statements(statements: Sequence[str], target: str, restarts: int) -> Iterator[str]:
    if not statements:
        yield "Nothing to change."
        return
    needed = counted(restarts, "restart") if restarts else "no restart"
    yield f"Would run {counted(len(statements), 'statement')} on {target}; needs {needed}"
    yield ""
    yield from (f"    {statement}" for statement in statements)


def _apply(entries: Sequence[StatusEntry]) -> Iterator[str]:
    first = entries[0]
    yield f"{first.apply_id}  {first.created}  by {first.made_by}, on {first.target}"
    rows = []
    for entry in entries:
        now = f"in force: {entry.effective}" if entry.effective is not None else ""
        state = "" if entry.state is ReceiptState.VERIFIED else f"[{entry.state}]"
        wanted = f"{entry.wanted} (was {entry.found or _UNSET})"
        rows.append((display_name(entry.key), wanted, f"{now} {state}".strip()))
    yield from aligned(rows, "    ")
    yield from (
        f"    changed since: {display_name(entry.key)}: {entry.drift}" for entry in entries if entry.drift
    )


def _findings(findings: Iterable[Finding]) -> list[str]:
    lines = []
    for finding in findings:
        lines += [f"{finding.severity.upper()}: {finding.message}", f"    hint: {finding.hint}"]
    return [*lines, ""] if lines else []


def _drift(drift: Drift, revert_command: str) -> Iterator[str]:
    yield ""
    if drift.later is not None:
        by = f"the plan for the server at {drift.later}"
        yield f"Left alone: {display_name(drift.key)}: {by} has changed it since"
        yield "    revert that plan first, then this one"
        return
    now = "someone else removed it" if drift.now is None else f"someone else set it to {drift.now}"
    yield f"Left alone: {display_name(drift.key)}: {now} after pgdyno changed it to {drift.wanted}"
    if drift.key == OF_GROUP and drift.now is not None:
        yield "    it was made by another program or an interrupted apply; if no program needs it, as root,"
        yield f"    rmdir {GROUP}, then {revert_command}"
    yield f"    {revert_command} --drifted=overwrite restores the original values,"
    yield "    --drifted=keep keeps the present ones"


def _others(journals: Iterable[OtherJournal]) -> Iterator[str]:
    for one in journals:
        held = "it may contain changes; this user cannot read it"
        if one.open_receipts is not None:
            held = f"{counted(one.open_receipts, 'change')} applied"
        yield f"another journal: {one.directory} ({held})"
        if one.undoing is not None:
            yield f"    undo: {one.undoing}"


def _damage(damage: Iterable[str]) -> list[str]:
    lines = [f"    {line}" for line in damage]
    return ["", "The journal is damaged; the contents of these lines are unknown:", *lines] if lines else []


def _notes(notes: Iterable[str]) -> list[str]:
    return [f"note: {note}" for note in notes]


def _effective(one: Outcome) -> str:
    """Describe the effective value; empty if it is literally the requested one."""
    return "" if one.effective in (None, one.wanted) else f"in force: {one.effective}"


def _arrow(before: str | None, after: str | None) -> str:
    return f"{before or _UNSET} → {after or _UNSET}"


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"
