"""Lines that people type when pgdyno cannot do it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.apply.machines import SWAPPINESS, change
from tests.unit.apply.receipts import receipt

from pgdyno.apply.runs.manual_commands import making_statement, restoring_statements, still_changed
from pgdyno.base.errors import ServerError
from pgdyno.base.ports import Found
from pgdyno.model.plans.journal import Receipt
from pgdyno.model.plans.plan import Change, Effect

BYTES, SCHEDULER = "/proc/sys/vm/dirty_bytes", "/sys/block/sda/queue/scheduler"


def on_host(path: str, value: str, found: Found) -> Receipt:
    return replace(receipt(), change=change(path, value), found=found)


def test_the_machine_is_changed_from_a_root_shell() -> None:
    assert making_statement(change(SWAPPINESS, "10")) == "echo 10 > /proc/sys/vm/swappiness"
    assert making_statement(change("/proc/sys/net/ipv4/tcp_rmem", "4096 1 2")) == (
        "echo '4096 1 2' > /proc/sys/net/ipv4/tcp_rmem"
    )


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (on_host(SWAPPINESS, "10", Found("60", {})), "echo 60 > /proc/sys/vm/swappiness"),
        (on_host(BYTES, "1", Found("0", {"counterpart": "20"})), "echo 20 > /proc/sys/vm/dirty_ratio"),
        (on_host(BYTES, "1", Found("8192", {"counterpart": "0"})), "echo 8192 > /proc/sys/vm/dirty_bytes"),
        (
            on_host(SCHEDULER, "none", Found("bfq", {"/sys/block/sda/queue/nr_requests": "64"})),
            "echo bfq > /sys/block/sda/queue/scheduler; echo 64 > /sys/block/sda/queue/nr_requests",
        ),
    ],
)
def test_what_was_found_is_written_back_from_a_root_shell(one: Receipt, line: str) -> None:
    assert restoring_statements([one]) == (line,)


def test_what_is_still_changed_on_both_is_said_apart() -> None:
    receipts = [receipt(), on_host(SWAPPINESS, "10", Found("60", {}))]
    error = still_changed(
        ServerError("it failed", detail="why"), receipts, is_server_up=True, revert_command="pgdyno revert"
    )
    assert str(error) == (
        "it failed; something is still changed\n"
        "DETAIL:  why\n"
        "HINT:  pgdyno revert; by hand: ALTER SYSTEM RESET work_mem; then SELECT pg_reload_conf(); or restart"
        "; by hand, as root: echo 60 > /proc/sys/vm/swappiness"
    )


def test_an_account_is_made_and_removed_with_its_files_by_hand() -> None:
    made = Change("setup", "account", "account pgdyno", None, "system account", Effect.IMMEDIATE)
    assert making_statement(made) == (
        "useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "
        "--comment 'servers and builds of pgdyno' pgdyno"
    )
    one = replace(receipt(), change=made, found=Found(None, {"files_below": "/srv/my home"}))
    assert restoring_statements([one]) == ("find '/srv/my home' -user pgdyno -delete; userdel pgdyno",)
