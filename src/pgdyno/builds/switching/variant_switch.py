"""Switch a running server between variants by apply and revert, with receipts and checks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.revert import RevertRequest, revert
from pgdyno.apply.session.access import ServerAccess
from pgdyno.base.errors import LockHeldError, PgdynoError, StillChangedError, as_pgdyno_error
from pgdyno.model.plans.journal import ApplyResult, RevertResult
from pgdyno.model.plans.plan import Plan
from pgdyno.model.variants.variant import Variant

_POLL_S = 0.2


@dataclass
class Switch:
    """A server that runs ``base`` at the beginning and at the end.

    ``plan`` has a line for each setting to change; a variant uses none or some of them, with its own values.
    Only this object's own apply is undone: another user may have applied other changes since. ``result``: of
    the apply in force. Restoring waits for another pgdyno's changes, at most ``lock_wait_s``; after that the
    configuration stays changed.
    """

    access: ServerAccess
    base: Variant
    plan: Plan
    allow_restart: bool
    is_standby_order_kept: bool = False
    lock_wait_s: float = 60.0
    result: ApplyResult | None = field(default=None, init=False)
    _applied: Mapping[str, str] = field(default_factory=dict, init=False)
    _apply_id: str | None = field(default=None, init=False)

    def to(self, variant: Variant) -> None:
        """Switch the server to a variant, through its original configuration, unless it already runs it.

        Raises: the errors of apply and revert.
        """
        wanted = {k: v for k, v in variant.settings.items() if self.base.settings.get(k) != v}
        if wanted == self._applied:
            return
        self.back()
        lines = tuple(
            replace(line, change=replace(line.change, value=wanted[line.change.key]))
            for line in self.plan.lines
            if line.change.key in wanted
        )
        request = ApplyRequest(
            Plan(lines, (), (), self.plan.memory_proof),
            allow_restart=self.allow_restart,
            is_standby_order_kept=self.is_standby_order_kept,
        )
        self._apply_id = request.apply_id  # set before any change, so that a failed apply is undone too
        self.result = apply_plan(self.access, request)
        self._applied = wanted

    def back(self) -> None:
        """Restore the server's original configuration.

        Raises: StillChangedError if someone else changed a setting during the measurement, or another pgdyno
        did not release the journal in time.
        """
        if self._apply_id is None:
            return
        request = RevertRequest(
            apply_id=self._apply_id,
            allow_restart=self.allow_restart,
            is_standby_order_kept=self.is_standby_order_kept,
        )
        result = self._reverted(request)
        if not result.is_complete:
            raise StillChangedError(
                "someone else changed the server while it was measured",
                detail="the settings that they changed were left alone",
                hint="pgdyno status shows them; "
                "pgdyno revert --drifted=overwrite restores the original values",
            )
        self._applied, self._apply_id, self.result = {}, None, None

    def _reverted(self, request: RevertRequest) -> RevertResult:
        """Revert, waiting while another pgdyno holds the lock."""
        deadline_s = time.monotonic() + self.lock_wait_s
        while True:
            try:
                return revert(self.access, request)
            except LockHeldError as error:
                try:
                    if time.monotonic() > deadline_s:
                        raise
                    time.sleep(_POLL_S)
                except (LockHeldError, KeyboardInterrupt) as ended:
                    raise self._not_restored(ended) from error

    def _not_restored(self, error: LockHeldError | KeyboardInterrupt) -> PgdynoError:
        """Return the error for a revert that did not start: ``error`` itself if nothing is to revert."""
        known = as_pgdyno_error(error)
        receipts = read_journal(self.access.journal_directory).open
        if not any(one.apply_id == self._apply_id for one in receipts):
            return known
        return StillChangedError(
            f"{known.message}; the measured configuration is still in force",
            detail=known.detail,
            hint=f"when the other pgdyno has ended: {self.access.revert_command}",
        )
