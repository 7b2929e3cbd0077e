"""``pgdyno apply``: check a plan against the present server and machine, and carry it out.

The plan is made final, with the files of ``--persist``; then all ``_CHECKS`` run in their order; then it is
shown or carried out. ``apply/apply.py`` makes the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from pgdyno.apply.apply import Checked, Opened, open_for_apply, open_for_preview
from pgdyno.apply.configuration.standby_order import check_standby_order
from pgdyno.apply.persist import Persisted, Persisting
from pgdyno.apply.runs.changes import new_apply_id
from pgdyno.apply.session.access import ServerAccess, Steps, no_steps
from pgdyno.apply.session.ownership import check_managers, check_settings
from pgdyno.base.errors import PermissionNotGivenError, RefusedError, UsageError
from pgdyno.host.cpu_idling import HALT_POLLING
from pgdyno.host.files.tree import Tree
from pgdyno.host.kernel_file import display_name
from pgdyno.host.machine.owners import check_owners
from pgdyno.model.plans.journal import ApplyResult, restart_options
from pgdyno.model.plans.plan import PER_APPLICATION, Change, Plan
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
class _FinalPlan:
    """A plan with all its changes, on an opened server. Files and values are read at first use."""

    request: ApplyRequest
    opened: Opened
    is_preview: bool = False

    @cached_property
    def persisted(self) -> Persisted | None:
        """The files that make the plan's changes of the machine persistent; None if not requested."""
        if not self.request.is_persisted:
            return None
        access, target = self.opened.access, self.opened.session.target
        where = Persisting(Tree(access.host_root), access.host_writers, self.opened.contents, target)
        return where.files(self.request.plan.host_changes)

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, those of files included."""
        planned = tuple(line.change for line in self.request.plan.lines)
        return planned if self.persisted is None else (*planned, *self.persisted.changes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the persistent files."""
        return () if self.persisted is None else self.persisted.notes

    @cached_property
    def checked(self) -> Checked:
        """The changes with the original values."""
        return self.opened.check(self.changes)

    @property
    def settings(self) -> Mapping[str, str]:
        """The planned settings."""
        return self.request.plan.settings


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
        final = _FinalPlan(request, run.opened)
        result = _checked(final)
        if not final.checked.prepared:
            return replace(result, restarts=0)
        outcomes = run.carry_out(final.checked.prepared)
        return replace(result, apply_id=request.apply_id, outcomes=outcomes)


def preview_apply(access: ServerAccess, request: ApplyRequest) -> ApplyResult:
    """Return the effect that ``apply_plan`` would have, after all checks except the permission to restart.

    Changes nothing, and does not write to the journal.
    """
    with open_for_preview(access) as opened:
        return replace(_checked(_FinalPlan(request, opened, is_preview=True)), is_dry_run=True)


def _checked(final: _FinalPlan) -> ApplyResult:
    """Run all checks, and return the facts known before any change. Changes nothing."""
    request, opened = final.request, final.opened
    notes = [note for check in _CHECKS if (note := check(final)) is not None]
    return ApplyResult(
        apply_id=None,
        target=opened.session.target.address,
        outcomes=(),
        statements=final.checked.statements,
        restarts=int(bool(final.checked.restarting)),
        notes=(*notes, *_left_out(request.plan, is_preview=final.is_preview), *final.notes),
        findings=request.plan.findings,
        revert_command=opened.access.revert_command,
        restart_options=restart_options(opened.access.restart_command),
    )


def _check_server(final: _FinalPlan) -> None:
    """Refuse a plan for a different server: a DSN with several hosts may lead to another one each time."""
    planned_on, here = final.request.planned_on, describe(final.opened.session.connection)
    if planned_on not in (None, here):
        raise RefusedError(
            "the plan was made for a different server than the one connected",
            detail=f"planned for {planned_on}; connected to {here}",
            hint="name one server, by its own address: --dsn 'host=… port=…'",
        )


def _check_no_per_application(final: _FinalPlan) -> None:
    for name in sorted(PER_APPLICATION & final.settings.keys()):
        wanted = final.settings[name]
        raise RefusedError(
            f"{name} = {wanted} is not set for a whole server",
            detail="it suits the statements of one application, but may harm those of another",
            hint=f"ALTER ROLE name SET {name} = {wanted}; to undo: ALTER ROLE name RESET {name}",
        )


def _check_managers(final: _FinalPlan) -> str | None:
    files = final.opened.files
    check_managers(final.opened.server.managers, files.patroni_file() if files else None)
    return None if files else "the server's files are not accessible: a revert will use only ALTER SYSTEM"


def _check_changes(final: _FinalPlan) -> str | None:
    unknown = final.checked.unknown_edits
    return (
        None if unknown is None else f"could not check the configuration files for edits by others: {unknown}"
    )


def _check_restart(final: _FinalPlan) -> None:
    keys = final.checked.restarting
    if not keys or final.is_preview:
        return
    if not final.request.allow_restart:
        raise PermissionNotGivenError(
            f"{len(keys)} of {len(final.request.plan.lines)} changes need a restart, which was not allowed",
            detail=", ".join(keys),
            hint="--allow-restart allows one restart",
        )
    if final.opened.access.restarter is None:
        raise UsageError(
            "the plan needs a restart, but pgdyno does not know how to restart this server",
            detail=", ".join(keys),
            hint="use --restart-command 'pg_ctlcluster 15 main restart', or this server's restart command",
        )


def _check_start(final: _FinalPlan) -> str | None:
    request = final.request
    if request.start_check is not None:
        if final.settings:
            request.start_check(final.opened.server, final.settings)
    elif final.checked.restarting and not request.is_start_tried:
        return "the start was not tested beforehand: the server's programs are not accessible"
    return None


_CHECKS: tuple[Callable[[_FinalPlan], str | None], ...] = (
    _check_server,
    lambda final: check_owners(
        Tree(final.opened.access.host_root), [change.key for change in final.request.plan.host_changes]
    ),
    lambda final: check_found(final.opened.server, final.opened.session.target.address),
    lambda final: check_durability(final.settings, final.opened.server),
    _check_no_per_application,
    _check_managers,
    lambda final: check_settings(final.opened.server.settings, final.settings),
    lambda final: check_standby_order(
        final.opened.server, final.settings, is_order_kept=final.request.is_standby_order_kept
    ),
    _check_changes,
    _check_restart,
    _check_start,
)
"""All checks of a plan, in order. Each refuses the plan, or returns a note for the user or None.

First whether this server and machine may be changed at all, then whether the values are harmless here and
accepted: no other reason counts if they are not. Only then the rights, edits by others and original values,
which need queries, and the user's permission. Last the trial start, which takes seconds.
"""


def _left_out(plan: Plan, *, is_preview: bool) -> Iterator[str]:
    """Yield a note on changes that are left out, and one on those that apply may leave out."""
    if plan.unmeasured:
        names = ", ".join(display_name(line.change.key) for line in plan.unmeasured)
        how = "pgdyno apply --unmeasured changes it too"
        yield f"not changed, because its effect has not been measured ({how}): {names}"
    if is_preview and any(line.change.lever == HALT_POLLING for line in plan.lines):
        yield "idle polling is tested briefly first, and left out if it does not shorten wake-ups here"
