"""``pgdyno apply``: check a plan against the present server and machine, and carry it out.

This module checks whether the plan suits them; ``apply/apply.py`` checks whether its changes can be made and
undone, and makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pgdyno.apply.apply import Checked, Opened, open_for_apply, open_for_preview
from pgdyno.apply.configuration.standby_order import check_standby_order
from pgdyno.apply.owners import check_owners
from pgdyno.apply.persist import Persisted, Persisting
from pgdyno.apply.runs.changes import new_apply_id
from pgdyno.apply.session.access import ServerAccess, Steps, no_steps
from pgdyno.apply.session.ownership import check_managers, check_settings
from pgdyno.apply.session.server_files import ServerFiles
from pgdyno.apply.session.session import Session
from pgdyno.base.errors import PermissionNotGivenError, RefusedError, UsageError
from pgdyno.host.cpu_idling import HALT_POLLING
from pgdyno.host.files.tree import Tree
from pgdyno.host.kernel_file import display_name
from pgdyno.model.plans.journal import ApplyResult, restart_options
from pgdyno.model.plans.plan import PER_APPLICATION, Plan
from pgdyno.plan.engine.durability import check_durability, check_found
from pgdyno.postgres.connection.connection import describe
from pgdyno.postgres.process.local_machine import machine_claimed
from pgdyno.postgres.server import Server

StartCheck: TypeAlias = Callable[[Server, Mapping[str, str]], None]
"""Tests whether a server starts with these settings. Raises: SettingError, ServerStartError."""


@dataclass(frozen=True)
class ApplyRequest:
    """A plan with permissions. ``is_persisted``: host changes survive a reboot.

    ``start_check`` None: the server's programs are not accessible; ``is_start_tried``: the caller has already
    tested the start. ``planned_on``: the server that the plan was made for, as ``describe`` formats it; None:
    do not compare. ``apply_id``: common id of its receipts.
    """

    plan: Plan
    is_persisted: bool = False
    allow_restart: bool = False
    is_standby_order_kept: bool = False
    start_check: StartCheck | None = None
    is_start_tried: bool = False
    planned_on: str | None = None
    steps: Steps = no_steps
    apply_id: str = field(default_factory=new_apply_id)


@dataclass(frozen=True)
class _Ready:
    """A plan that passed all checks, with the original values."""

    checked: Checked
    notes: tuple[str, ...]


def apply_plan(access: ServerAccess, request: ApplyRequest) -> ApplyResult:
    """Carry out a plan with a receipt for every change.

    Raises: RefusedError, SettingError, UsageError, LockHeldError before anything is changed; any other error
    after everything was restored; StillChangedError if that was not possible.
    """
    with (
        machine_claimed(is_wanted=bool(request.plan.host_changes)),  # a trial's values are not originals
        open_for_apply(
            access, request.apply_id, allow_restart=request.allow_restart, steps=request.steps
        ) as run,
    ):
        ready = _checked(request, run.opened)
        result = _result(request, run.opened, ready)
        if not ready.checked.prepared:
            return replace(result, restarts=0)
        outcomes = run.carry_out(ready.checked.prepared)
        return replace(result, apply_id=request.apply_id, outcomes=outcomes)


def preview_apply(access: ServerAccess, request: ApplyRequest) -> ApplyResult:
    """Return the effect that ``apply_plan`` would have, after all checks except the permission to restart.

    Changes nothing, and does not write to the journal.
    """
    with open_for_preview(access) as opened:
        ready = _checked(request, opened, is_preview=True)
        return replace(_result(request, opened, ready), is_dry_run=True)


def _checked(request: ApplyRequest, opened: Opened, *, is_preview: bool = False) -> _Ready:
    """Run all checks and read the original values. Changes nothing."""
    _check_server(request, opened.session)
    check_owners(Tree(opened.access.host_root), request.plan.host_changes)
    check_found(opened.server, opened.session.target.address)
    _check_plan(request, opened.server, opened.files)
    persisted = _persisted(request, opened)
    checked = opened.check((*(line.change for line in request.plan.lines), *persisted.changes))
    if not is_preview:
        _check_restart(opened.access, request, checked.restarting)
    if request.plan.settings and request.start_check is not None:
        request.start_check(opened.server, request.plan.settings)
    notes = (*_notes(request, opened, checked), *_left_out(request.plan, is_preview=is_preview))
    return _Ready(checked, (*notes, *persisted.notes))


def _persisted(request: ApplyRequest, opened: Opened) -> Persisted:
    if not request.is_persisted:
        return Persisted()
    access = opened.access
    where = Persisting(Tree(access.host_root), access.host_writers, opened.contents, opened.session.target)
    return where.files(request.plan.host_changes)


def _check_server(request: ApplyRequest, session: Session) -> None:
    """Refuse a plan for a different server: a DSN with several hosts may lead to another one each time."""
    here = describe(session.connection)
    if request.planned_on not in (None, here):
        raise RefusedError(
            "the plan was made for a different server than the one connected",
            detail=f"planned for {request.planned_on}; connected to {here}",
            hint="name one server, by its own address: --dsn 'host=… port=…'",
        )


def _check_plan(request: ApplyRequest, server: Server, files: ServerFiles | None) -> None:
    wanted = request.plan.settings
    check_durability(wanted, server)
    _check_no_per_application(wanted)
    check_managers(server.managers, files.patroni_file() if files else None)
    check_settings(server.settings, wanted)
    check_standby_order(server, wanted, is_order_kept=request.is_standby_order_kept)


def _check_no_per_application(wanted: Mapping[str, str]) -> None:
    for name in sorted(PER_APPLICATION & wanted.keys()):
        raise RefusedError(
            f"{name} = {wanted[name]} is not set for a whole server",
            detail="it suits the statements of one application, but may harm those of another",
            hint=f"ALTER ROLE name SET {name} = {wanted[name]}; to undo: ALTER ROLE name RESET {name}",
        )


def _check_restart(access: ServerAccess, request: ApplyRequest, keys: tuple[str, ...]) -> None:
    if keys and not request.allow_restart:
        raise PermissionNotGivenError(
            f"{len(keys)} of {len(request.plan.lines)} changes need a restart, which was not allowed",
            detail=", ".join(keys),
            hint="--allow-restart allows one restart",
        )
    if keys and access.restarter is None:
        raise UsageError(
            "the plan needs a restart, but pgdyno does not know how to restart this server",
            detail=", ".join(keys),
            hint="use --restart-command 'pg_ctlcluster 15 main restart', or this server's restart command",
        )


def _notes(request: ApplyRequest, opened: Opened, checked: Checked) -> tuple[str, ...]:
    notes = []
    if opened.files is None:
        notes.append("the server's files are not accessible: a revert will use only ALTER SYSTEM")
    if checked.unknown_edits is not None:
        notes.append(f"could not check the configuration files for edits by others: {checked.unknown_edits}")
    if checked.restarting and request.start_check is None and not request.is_start_tried:
        notes.append("the start was not tested beforehand: the server's programs are not accessible")
    return tuple(notes)


def _left_out(plan: Plan, *, is_preview: bool) -> Iterator[str]:
    """Yield a note on changes that are left out, and one on those that apply may leave out."""
    if plan.unmeasured:
        names = ", ".join(display_name(line.change.key) for line in plan.unmeasured)
        how = "pgdyno apply --unmeasured changes it too"
        yield f"not changed, because its effect has not been measured ({how}): {names}"
    if is_preview and any(line.change.lever == HALT_POLLING for line in plan.lines):
        yield "idle polling is tested briefly first, and left out if it does not shorten wake-ups here"


def _result(request: ApplyRequest, opened: Opened, ready: _Ready) -> ApplyResult:
    """Return the facts known before any change."""
    return ApplyResult(
        apply_id=None,
        target=opened.session.target.address,
        outcomes=(),
        statements=ready.checked.statements,
        restarts=int(bool(ready.checked.restarting)),
        notes=ready.notes,
        findings=request.plan.findings,
        revert_command=opened.access.revert_command,
        restart_options=restart_options(opened.access.restart_command),
    )
