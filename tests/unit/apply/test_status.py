"""status of a machine, on a directory that looks like one, without any server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.apply.machines import AUTOGROUP, BOOT, SWAPPINESS, carry_out, make_machine, put

from pgdyno.apply.ledger.log import open_journal
from pgdyno.apply.runs.host_run import host_writers
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.query import Connection
from pgdyno.apply.status import journal_status
from pgdyno.base.errors import ConnectionFailedError
from pgdyno.model.plans.journal import StatusEntry
from pgdyno.postgres.inspection.inspection import inspect_server

REGISTER = "/dev/cpu/3/msr:0x1a4"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine that a plan has changed."""
    root = make_machine(tmp_path / "machine")
    with open_journal(tmp_path / "journal") as journal:
        carry_out(root, journal, {SWAPPINESS: "10", AUTOGROUP: "0"})
    return root


@pytest.fixture
def access(root: Path, tmp_path: Path) -> ServerAccess:
    def nobody_answers() -> Connection:
        raise ConnectionFailedError("no server is asked")

    return ServerAccess(nobody_answers, tmp_path / "journal", inspect_server, host_writers=host_writers(root))


def entry(access: ServerAccess, key: str) -> StatusEntry:
    report = journal_status(access, candidates=())
    return next(one for one in report.entries if one.key == key)


def test_the_kernel_is_asked_what_it_shows(access: ServerAccess) -> None:
    one = entry(access, SWAPPINESS)
    assert (one.found, one.wanted, one.effective, one.drift) == ("60", "10", "10", None)


@pytest.mark.parametrize(
    ("value", "drift"),
    [("30", "it was set to 30"), ("60", "it has its original value")],
)
def test_what_became_of_a_change_is_said(root: Path, access: ServerAccess, value: str, drift: str) -> None:
    put(root, SWAPPINESS, value)
    assert (entry(access, SWAPPINESS).effective, entry(access, SWAPPINESS).drift) == (value, drift)


def test_a_machine_that_was_restarted_has_forgotten_it(root: Path, access: ServerAccess) -> None:
    put(root, BOOT, "second")
    put(root, SWAPPINESS, "60")
    (root / AUTOGROUP.lstrip("/")).unlink()
    for key in (SWAPPINESS, AUTOGROUP):
        assert entry(access, key).drift == "the machine was restarted, which discarded it"


def test_a_machine_that_was_restarted_may_have_the_value_from_a_file(
    root: Path, access: ServerAccess
) -> None:
    put(root, BOOT, "second")
    assert entry(access, SWAPPINESS).drift == "the machine was restarted, but still has this value"


def test_a_file_that_is_gone_is_said(root: Path, access: ServerAccess) -> None:
    (root / AUTOGROUP.lstrip("/")).unlink()
    assert (entry(access, AUTOGROUP).effective, entry(access, AUTOGROUP).drift) == (
        None,
        "its file no longer exists",
    )


def test_a_register_that_the_processor_refuses_is_not_known(root: Path, access: ServerAccess) -> None:
    device = root / "dev/cpu/3/msr"
    device.parent.mkdir(parents=True)
    device.write_bytes(bytes(0x1A4 + 8))
    with open_journal(access.journal_directory) as journal:
        carry_out(root, journal, {REGISTER: "0x1"}, "apply-2")
    device.write_bytes(b"")  # as a processor that has no such register
    assert entry(access, REGISTER).drift == f"unknown: the processor rejects access to {REGISTER}"


def test_a_change_of_another_machine_is_shown_and_not_looked_for_here(
    root: Path, access: ServerAccess
) -> None:
    """As with a home directory that several machines mount."""
    with open_journal(access.journal_directory) as journal:
        receipt = journal.read().receipts[0]
        elsewhere = replace(receipt.target, identity="other", machine="other", address="db2")
        journal.add(replace(receipt, id="other/host-01", apply_id="other", target=elsewhere))
    (one,) = (one for one in journal_status(access, candidates=()).entries if one.target == "db2")
    assert (one.effective, one.drift) == (None, None)
