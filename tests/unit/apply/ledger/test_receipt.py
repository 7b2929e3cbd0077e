"""Receipts go one way, and come back from JSON as they went."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.apply.receipts import TARGET, receipt

from pgdyno.apply.ledger.receipt import advanced, receipt_document, receipt_of
from pgdyno.base.errors import StorageError
from pgdyno.base.ports import Found
from pgdyno.model.plans.journal import Receipt, ReceiptState

WAYS = {
    "written": {"applied", "failed", "reverted", "released"},
    "applied": {"verified", "failed", "reverted", "released"},
    "verified": {"reverted", "released"},
    "failed": {"reverted", "released"},
    "reverted": set(),
    "released": set(),
}  # as drawn in model/plans/journal.py


@pytest.mark.parametrize("before", list(ReceiptState))
@pytest.mark.parametrize("after", list(ReceiptState))
def test_a_receipt_goes_only_the_ways_that_are_drawn(before: ReceiptState, after: ReceiptState) -> None:
    start = replace(receipt(), state=before)
    if after in WAYS[before]:
        assert advanced(start, after).state is after
    else:
        with pytest.raises(StorageError, match=f"cannot change from {before} to {after}"):
            advanced(start, after)


def test_what_was_read_back_stays_when_a_later_step_says_nothing() -> None:
    verified = advanced(
        replace(receipt(), state=ReceiptState.APPLIED), ReceiptState.VERIFIED, effective="8192"
    )
    assert advanced(verified, ReceiptState.RELEASED).effective == "8192"


def test_what_was_read_back_ends_when_a_change_is_undone() -> None:
    verified = replace(receipt(), state=ReceiptState.VERIFIED, effective="8192")
    assert advanced(verified, ReceiptState.REVERTED, effective="4096").effective == "4096"
    assert advanced(verified, ReceiptState.REVERTED).effective is None  # an account that was removed


def test_how_a_change_failed_is_not_said_of_one_that_is_undone() -> None:
    failed = advanced(receipt(), ReceiptState.FAILED, note="not in force")
    assert advanced(failed, ReceiptState.REVERTED).note is None
    assert advanced(failed, ReceiptState.RELEASED, note="left to them").note == "left to them"


@given(value=st.none() | st.text(), state=st.dictionaries(st.text(), st.text()), wanted=st.text())
def test_a_receipt_comes_back_from_json_as_it_was(
    value: str | None, state: dict[str, str], wanted: str
) -> None:
    alone: Receipt = replace(receipt(value=wanted), found=Found(value, state))
    restarted = replace(alone, restart_command=("systemctl", "restart", "postgresql"))
    for before in (alone, replace(alone, server=TARGET), restarted):
        assert receipt_of(json.loads(json.dumps(receipt_document(before)))) == before


@pytest.mark.parametrize("command", ["reboot", ["systemctl", 5], {"systemctl": "restart"}])
def test_a_restart_command_is_a_list_of_words(command: object) -> None:
    document = json.loads(json.dumps(receipt_document(receipt())))
    with pytest.raises(TypeError, match="the restart command is not a list of words"):
        receipt_of({**document, "restart_command": command})
