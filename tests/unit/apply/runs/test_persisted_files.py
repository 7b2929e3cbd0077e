"""Files that outlive a restart, changed and undone together with the running kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.apply.machines import BOOT, SWAPPINESS, change, make_machine, put, value_of

from pgdyno.apply.journal_text import revert_text, status_text
from pgdyno.apply.ledger.log import open_journal
from pgdyno.apply.revert import RevertRequest
from pgdyno.apply.revert_host import preview_revert_host, revert_host
from pgdyno.apply.runs.changes import prepare, receipts_for, write_receipts
from pgdyno.apply.runs.host_run import HostRun, host_target, host_writers
from pgdyno.apply.runs.manual_commands import making_statement, outcome
from pgdyno.apply.session.access import ServerAccess, no_steps
from pgdyno.apply.session.query import Connection
from pgdyno.apply.status import journal_status
from pgdyno.base.errors import ConnectionFailedError
from pgdyno.model.plans.journal import OnDrift, Receipt, ReceiptState, StatusEntry
from pgdyno.model.plans.plan import PERSISTED_FILE, Change, Effect
from pgdyno.postgres.inspection.inspection import inspect_server

SYSCTLS, RULES = "/etc/sysctl.d/60-pgdyno.conf", "/etc/udev/rules.d/60-pgdyno.rules"
TEXT = "vm.swappiness = 10\n"
SHOWN = "sha256 a7b7a3e68e1e"  # printf 'vm.swappiness = 10\n' | sha256sum


def file(path: str = SYSCTLS, text: str = TEXT) -> Change:
    return Change("persist", PERSISTED_FILE, path, None, text, Effect.IMMEDIATE)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_machine(tmp_path / "machine")
    (root / "etc/sysctl.d").mkdir(parents=True)
    return root


@pytest.fixture
def access(root: Path, tmp_path: Path) -> ServerAccess:
    def nobody_answers() -> Connection:
        raise ConnectionFailedError("no server is asked")

    return ServerAccess(
        nobody_answers, tmp_path / "journal", inspect_server, host_writers=host_writers(root), host_root=root
    )


def apply(access: ServerAccess, *changes: Change, apply_id: str = "apply-1") -> tuple[Receipt, ...]:
    with open_journal(access.journal_directory) as journal:
        prepared = prepare(changes, access.host_writers)
        receipts = receipts_for(apply_id, host_target(), prepared)
        write_receipts(journal, receipts, no_steps)
        return HostRun(journal, access.host_writers).carry_out(receipts)


def entry(access: ServerAccess, key: str) -> StatusEntry:
    return next(one for one in journal_status(access, candidates=()).entries if one.key == key)


def etc(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in (root / "etc").rglob("*"))


def test_a_file_and_the_kernel_are_undone_together(root: Path, access: ServerAccess) -> None:
    apply(access, change(SWAPPINESS, "10"), file(), file(RULES))
    assert (root / "etc/sysctl.d/60-pgdyno.conf").read_text() == TEXT
    result = revert_host(access, RevertRequest())
    assert [(one.key, one.state) for one in result.outcomes] == [
        (RULES, ReceiptState.REVERTED),
        (SYSCTLS, ReceiptState.REVERTED),
        (SWAPPINESS, ReceiptState.REVERTED),
    ]
    assert etc(root) == ["etc/sysctl.d"]
    assert value_of(root, SWAPPINESS) == "60"


def test_after_a_restart_the_kernel_has_forgotten_and_the_file_is_still_taken_away(
    root: Path, access: ServerAccess
) -> None:
    apply(access, change(SWAPPINESS, "10"), file())
    put(root, BOOT, "second")  # in which the file has set it
    result = revert_host(access, RevertRequest())
    assert result.is_complete
    assert etc(root) == ["etc/sysctl.d"]
    assert value_of(root, SWAPPINESS) == "10"
    notes = {one.key: one.note for one in result.outcomes}
    assert notes == {
        SYSCTLS: None,
        SWAPPINESS: "the machine was restarted since, has this value, and keeps it until the next restart",
    }


def test_status_shows_a_file_by_its_checksum_also_after_a_restart(root: Path, access: ServerAccess) -> None:
    apply(access, file())
    put(root, BOOT, "second")
    one = entry(access, SYSCTLS)
    assert (one.found, one.wanted, one.effective, one.drift) == ("no file", SHOWN, SHOWN, None)
    text = status_text(journal_status(access, candidates=()))
    assert f"    {SYSCTLS}  {SHOWN} (was no file)  in force: {SHOWN}\n" in text


def test_an_edit_is_shown_and_not_undone_unless_the_user_says_so(root: Path, access: ServerAccess) -> None:
    apply(access, change(SWAPPINESS, "10"), file())
    put(root, SYSCTLS, "vm.swappiness = 30")
    assert entry(access, SYSCTLS).drift == "it was edited by someone else"
    result = revert_host(access, RevertRequest())
    assert not result.is_complete
    (drift,) = result.drifted
    # printf 'vm.swappiness = 30\n' | sha256sum
    assert (drift.key, drift.found, drift.wanted, drift.now) == (
        SYSCTLS, "no file", SHOWN, "sha256 0ecdff1cfd87",
    )  # fmt: skip
    assert value_of(root, SYSCTLS) == "vm.swappiness = 30"
    assert value_of(root, SWAPPINESS) == "60"
    assert revert_host(access, RevertRequest(on_drift=OnDrift.OVERWRITE)).is_complete
    assert etc(root) == ["etc/sysctl.d"]


def test_an_edit_is_left_if_the_user_says_so(root: Path, access: ServerAccess) -> None:
    apply(access, file())
    put(root, SYSCTLS, "vm.swappiness = 30")
    assert revert_host(access, RevertRequest(on_drift=OnDrift.KEEP)).is_complete
    assert value_of(root, SYSCTLS) == "vm.swappiness = 30"
    assert journal_status(access, candidates=()).entries == ()


def test_a_file_that_somebody_has_taken_away_is_said(root: Path, access: ServerAccess) -> None:
    apply(access, file())
    apply(access, file(text="vm.swappiness = 5\n"), apply_id="apply-2")
    (root / "etc/sysctl.d/60-pgdyno.conf").unlink()
    newest = journal_status(access, candidates=()).entries[-1]
    assert newest.drift == "its file no longer exists"


def test_two_applies_go_back_one_after_the_other(root: Path, access: ServerAccess) -> None:
    apply(access, file())
    apply(access, file(text="vm.swappiness = 5\n"), apply_id="apply-2")
    result = revert_host(access, RevertRequest())
    assert [(one.wanted, one.effective) for one in result.outcomes] == [("sha256 682039e26121", SHOWN)]
    assert (root / "etc/sysctl.d/60-pgdyno.conf").read_text() == TEXT
    text = revert_text(revert_host(access, RevertRequest()))
    assert f"    {SYSCTLS}  {SHOWN} → no file\n" in text
    assert etc(root) == ["etc/sysctl.d"]


def test_nothing_that_people_see_holds_the_text(access: ServerAccess) -> None:
    (receipt,) = apply(access, file())
    seen = outcome(receipt)
    assert (seen.before, seen.found, seen.wanted, seen.effective) == ("no file", "no file", SHOWN, SHOWN)


def test_statements_are_what_a_root_shell_takes(access: ServerAccess) -> None:
    assert making_statement(file()) == f"printf %s 'vm.swappiness = 10\n' > {SYSCTLS}"
    apply(access, file())
    apply(access, file(text="vm.swappiness = 5\n"), apply_id="apply-2")
    assert preview_revert_host(access, RevertRequest(is_all=True)).statements == (
        f"printf %s 'vm.swappiness = 10\n' > {SYSCTLS}",
        f"rm -f {SYSCTLS}",
    )
