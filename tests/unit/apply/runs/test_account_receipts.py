"""Receipts of ``setup --account`` beside those of plans and trials."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from tests.unit.apply.machines import AUTOGROUP, SWAPPINESS, carry_out, make_machine

from pgdyno.apply.ledger.log import Journal
from pgdyno.apply.revert_host import affects_only_host
from pgdyno.apply.runs.changes import Prepared, check_unfinished, receipts_for
from pgdyno.apply.runs.host_run import host_target, host_writers, receipts_of_host
from pgdyno.apply.session.access import ServerAccess
from pgdyno.base.errors import ConnectionFailedError, RefusedError
from pgdyno.base.ports import Found
from pgdyno.model.plans.journal import Receipt, ReceiptState, Target
from pgdyno.model.plans.plan import Change, Effect
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.inspection.inspection import inspect_server

KEY, REVERT = "account pgdyno", "pgdyno revert --host-only"
MADE = Change("setup", "account", KEY, None, "system account", Effect.IMMEDIATE)
SERVER = Target("server", "mine", None, None, "host=mine")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_machine(tmp_path / "machine")


@pytest.fixture
def applied(journal: Journal) -> Receipt:
    """A receipt of an account that was made, and not yet read back."""
    (receipt,) = receipts_for("setup-1", host_target(), [Prepared(MADE, Found(None, {"files_below": "/x"}))])
    journal.add(receipt)
    return journal.advance(receipt, ReceiptState.APPLIED)


def test_the_account_stays_when_a_server_is_reverted(root: Path, journal: Journal, applied: Receipt) -> None:
    carry_out(root, journal, {SWAPPINESS: "10"}, "apply-1", SERVER)
    carry_out(root, journal, {AUTOGROUP: "0"}, "trial-1")
    receipts = journal.read().receipts
    assert [one.key for one in receipts_of_host(receipts, SERVER)] == [AUTOGROUP, SWAPPINESS]
    assert [one.key for one in receipts_of_host(receipts, None)] == [AUTOGROUP, SWAPPINESS, KEY]
    assert (applied.is_on_host, applied.is_of_trial, applied.is_of_machine_alone) == (True, False, True)


def test_trials_and_applies_are_refused_only_while_making_it_is_unfinished(
    journal: Journal, applied: Receipt
) -> None:
    with pytest.raises(RefusedError) as caught:
        check_unfinished(journal.read(), None, REVERT)
    assert str(caught.value) == (
        "an earlier setup (setup-1) was interrupted on this machine\n"
        "DETAIL:  account pgdyno may or may not be changed\n"
        "HINT:  pgdyno revert --host-only, then try again"
    )
    journal.advance(applied, ReceiptState.VERIFIED)
    with does_not_raise():
        check_unfinished(journal.read(), None, REVERT)


@pytest.mark.usefixtures("applied")
def test_a_plain_revert_asks_no_server_unless_one_was_changed(root: Path, journal: Journal) -> None:
    def nobody_answers() -> Connection:
        raise ConnectionFailedError("no server is asked")

    access = ServerAccess(
        nobody_answers, journal.directory, inspect_server, host_writers=host_writers(root), host_root=root
    )
    assert affects_only_host(access)
    carry_out(root, journal, {SWAPPINESS: "10"}, "apply-1", SERVER)
    assert not affects_only_host(access)
