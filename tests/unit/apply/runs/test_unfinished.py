"""What an interrupted pgdyno has left is undone before anything else is changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.apply.machines import SWAPPINESS, change
from tests.unit.apply.receipts import TARGET, receipt

from pgdyno.apply.ledger.log import Contents
from pgdyno.apply.runs.changes import REVERT_HOST, check_unfinished
from pgdyno.apply.runs.host_run import host_target
from pgdyno.base.errors import RefusedError, StorageError
from pgdyno.model.plans.journal import Receipt, ReceiptState, Target

OTHER = replace(TARGET, identity="1", address="host=/other")
REVERT = "pgdyno revert --dsn service=production"


def on_host(state: ReceiptState, server: Target | None) -> Receipt:
    return replace(
        receipt(), change=change(SWAPPINESS, "10"), target=host_target(), server=server, state=state
    )


def refusal(one: Receipt, server: Target | None = TARGET, revert_command: str = REVERT) -> str | None:
    try:
        check_unfinished(Contents((one,), ()), server, revert_command)
    except RefusedError as error:
        return str(error)
    return None


def test_a_change_of_the_machine_is_undone_with_the_server_that_asked_for_it() -> None:
    assert refusal(on_host(ReceiptState.WRITTEN, TARGET)) == (
        "an earlier apply (20261121T052400Z-1a2b3c) was interrupted on this machine\n"
        "DETAIL:  vm.swappiness may or may not be changed\n"
        "HINT:  pgdyno revert --dsn service=production, then try again"
    )


def test_a_change_of_the_machine_that_another_server_asked_for_is_undone_alone() -> None:
    said = refusal(on_host(ReceiptState.FAILED, OTHER))
    assert said is not None
    assert said.endswith("HINT:  pgdyno revert --host-only, then try again")


@pytest.mark.parametrize("state", [ReceiptState.WRITTEN, ReceiptState.VERIFIED])
def test_a_trial_that_was_killed_is_undone_first(state: ReceiptState) -> None:
    assert refusal(on_host(state, None), None, REVERT_HOST) == (
        "an earlier trial (20261121T052400Z-1a2b3c) was interrupted on this machine\n"
        "DETAIL:  vm.swappiness may or may not be changed\n"
        "HINT:  pgdyno revert --host-only, then try again"
    )


def test_a_change_of_the_server_is_undone_first() -> None:
    assert refusal(replace(receipt(), state=ReceiptState.APPLIED)) == (
        "an earlier apply (20261121T052400Z-1a2b3c) was interrupted on this server\n"
        "DETAIL:  work_mem may or may not be changed\n"
        "HINT:  pgdyno revert --dsn service=production, then try again"
    )


def test_what_is_finished_undone_or_somewhere_else_is_in_nobodys_way() -> None:
    elsewhere = replace(host_target(), identity="other", machine="other")
    for one in (
        on_host(ReceiptState.VERIFIED, TARGET),
        on_host(ReceiptState.REVERTED, None),
        replace(on_host(ReceiptState.WRITTEN, TARGET), target=elsewhere),
        replace(receipt(), state=ReceiptState.WRITTEN, target=OTHER),
        replace(receipt(), state=ReceiptState.VERIFIED),
    ):
        assert refusal(one) is None
    assert refusal(replace(receipt(), state=ReceiptState.WRITTEN), None) is None


def test_nothing_is_added_to_a_damaged_journal() -> None:
    with pytest.raises(StorageError) as caught:
        check_unfinished(Contents((), ("line 2 of the journal cannot be read",)), TARGET, REVERT)
    assert str(caught.value) == (
        "the journal is damaged, so no changes can be recorded in it\n"
        "DETAIL:  line 2 of the journal cannot be read\n"
        "HINT:  pgdyno revert --dsn service=production --all restores the readable entries; "
        "then move the journal away"
    )
