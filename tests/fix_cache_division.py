"""A division of the processor's caches: its changes, made as an apply makes them, and undone."""

from __future__ import annotations

from pathlib import Path

from tests.unit.apply.resctrl import (
    RESCTRL,
    writers_of,
)

from pgdyno.apply.ledger.log import Journal
from pgdyno.apply.runs.changes import prepare, receipts_for, write_receipts
from pgdyno.apply.runs.host_run import HostRun, host_target
from pgdyno.apply.session.access import Steps, no_steps
from pgdyno.host.cache_allocation import OF_GROUP, OF_OTHERS
from pgdyno.model.plans.journal import OnDrift, Receipt
from pgdyno.model.plans.plan import CACHE_GROUP, CACHE_MOUNT, Change, Effect

GROUP_PATH = f"{RESCTRL}/pgdyno"
DIVIDED = "L3CODE:0=fffff;1=fffff L3DATA:0=ffff0;1=ffff0"
MOUNT = Change("cache_allocation", CACHE_MOUNT, RESCTRL, None, "cdp", Effect.IMMEDIATE)
GROUP = Change("cache_allocation", CACHE_GROUP, OF_GROUP, None, f"{DIVIDED} for /srv/pg", Effect.IMMEDIATE)
SERVER = Change(
    "cache_allocation", CACHE_GROUP, OF_GROUP, None, "L3:0=ffff0;1=ffff0 for /srv/pg", Effect.IMMEDIATE
)
OTHERS = Change("cache_allocation", CACHE_GROUP, OF_OTHERS, None, "L3:0=f;1=f", Effect.IMMEDIATE)


def carry_out(root: Path, journal: Journal, *changes: Change, steps: Steps = no_steps) -> tuple[Receipt, ...]:
    """Make changes as an apply does: checks, receipts, changes, reading back."""
    run = HostRun(journal, writers_of(root), steps)
    prepared = prepare(changes, run.writers)
    for change in changes:
        run.writers[change.kind].check(change.key)
    receipts = receipts_for("apply-1", host_target(), prepared)
    write_receipts(journal, receipts, steps)
    return run.carry_out(receipts)


def undo(root: Path, journal: Journal, on_drift: OnDrift = OnDrift.SKIP) -> list[str]:
    """Revert everything, and return what has drifted."""
    done = HostRun(journal, writers_of(root)).undo(journal.read().open[::-1], on_drift)
    return [drift.key for drift in done.drifted]


def files(root: Path) -> dict[str, str]:
    """Return all that the file system shows."""
    top = root / RESCTRL.lstrip("/")
    return {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}
