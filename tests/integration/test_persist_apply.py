"""apply --persist and its revert, with a real server, on a directory that stands for its machine."""

from __future__ import annotations

import dataclasses
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fix_machine import SWAPPINESS, alone
from tests.fix_servers import RealServer, unprivileged_user
from tests.integration.journal_support import access_to, plan_of, with_files
from tests.integration.other_users import as_user
from tests.unit.apply.machines import AUTOGROUP, BOOT, make_machine, put, value_of

from pgdyno.apply.apply_advice import ApplyAdvice, apply_request
from pgdyno.apply.apply_plan import ApplyRequest, apply_plan, preview_apply
from pgdyno.apply.journal_text import apply_text, revert_text
from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.revert import RevertRequest, revert
from pgdyno.apply.runs.host_run import host_writers
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.status import server_status
from pgdyno.base.errors import OwnershipError
from pgdyno.model.plans.journal import ReceiptState
from pgdyno.plan.engine.resources import Figures

pytestmark = pytest.mark.server

SYSCTLS, RULES = "/etc/sysctl.d/60-pgdyno.conf", "/etc/udev/rules.d/60-pgdyno.rules"
READ_AHEAD = "/sys/block/vda/queue/read_ahead_kb"
PLAN = with_files(plan_of(work_mem="8MB"), {SWAPPINESS: "10", READ_AHEAD: "128"})
PERSISTED = ApplyRequest(PLAN, is_persisted=True)
RULE = 'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="vda", ATTR{queue/read_ahead_kb}="128"\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine that systemd starts, with a directory for sysctls and none for rules."""
    root = make_machine(tmp_path / "machine", {READ_AHEAD: "8192"})
    for directory in ("run/systemd/system", "run/udev", "etc/sysctl.d"):
        (root / directory).mkdir(parents=True)
    return root


@pytest.fixture
def access(pg18: RealServer, root: Path, tmp_path: Path) -> Iterator[ServerAccess]:
    found = access_to(pg18, tmp_path / "journal")
    with alone():  # what applies kernel files claims the machine, whichever directory they are in
        yield dataclasses.replace(found, host_writers=host_writers(root), host_root=root)


def everything(root: Path) -> dict[str, tuple[Any, ...]]:
    """Return all that a machine's directory holds."""
    return {str(path.relative_to(root)): described(path) for path in root.rglob("*")}


def described(path: Path) -> tuple[Any, ...]:
    found = path.stat()
    content = path.read_bytes() if path.is_file() else None
    return content, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid


def test_one_apply_changes_the_machine_and_what_it_starts_with_and_one_revert_undoes_all(
    pg18: RealServer, access: ServerAccess, root: Path
) -> None:
    before = everything(root)
    result = apply_plan(access, PERSISTED)
    assert [(one.key, one.before, one.state) for one in result.outcomes] == [
        (SWAPPINESS, "60", ReceiptState.VERIFIED),
        (READ_AHEAD, "8192", ReceiptState.VERIFIED),
        (SYSCTLS, "no file", ReceiptState.VERIFIED),
        (RULES, "no file", ReceiptState.VERIFIED),
        ("work_mem", "4MB", ReceiptState.VERIFIED),
    ]
    assert "\nvm.swappiness = 10\n" in (root / SYSCTLS.lstrip("/")).read_text()
    assert (root / RULES.lstrip("/")).read_text().endswith(RULE)
    note = f"note: {RULES} identifies disks by name (vda): make sure the names are stable\n"
    assert note in apply_text(result)
    undone = revert(access, RevertRequest())
    assert undone.is_complete
    assert len({one.id.partition("/")[0] for one in read_journal(access.journal_directory).receipts}) == 1
    assert everything(root) == before
    assert pg18.execute("SHOW work_mem") == [("4MB",)]
    assert f"    {SYSCTLS}" in revert_text(undone)


def test_without_persist_no_file_is_written(access: ServerAccess, root: Path) -> None:
    names = everything(root).keys()
    apply_plan(access, ApplyRequest(PLAN))
    assert everything(root).keys() == names
    assert revert(access, RevertRequest()).is_complete


def test_a_preview_shows_the_files_and_writes_none(access: ServerAccess, root: Path) -> None:
    before = everything(root)
    statements = preview_apply(access, PERSISTED).statements
    (rules,) = (one for one in statements if RULES in one)
    assert shlex.split(rules)[2].endswith(RULE)
    assert everything(root) == before


def test_what_is_in_force_already_is_persisted_by_a_later_apply(
    pg18: RealServer, access: ServerAccess, root: Path
) -> None:
    before = everything(root)
    apply_plan(access, ApplyRequest(PLAN))
    result = apply_plan(access, ApplyRequest(plan_of(), is_persisted=True))
    assert [one.key for one in result.outcomes] == [SYSCTLS, RULES]
    assert "\nvm.swappiness = 10\n" in (root / SYSCTLS.lstrip("/")).read_text()
    again = apply_plan(access, ApplyRequest(plan_of(), is_persisted=True))
    assert apply_text(again).startswith("Nothing to change.\n")
    assert [one.key for one in revert(access, RevertRequest()).outcomes] == [RULES, SYSCTLS]
    assert (value_of(root, SWAPPINESS), pg18.execute("SHOW work_mem")) == ("10", [("8MB",)])
    assert revert(access, RevertRequest(is_all=True)).is_complete
    assert everything(root) == before


def test_what_fails_later_takes_the_files_away_again(access: ServerAccess, root: Path) -> None:
    before = everything(root)

    def interrupt(step: str) -> None:
        if step == "changed work_mem":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply_plan(access, dataclasses.replace(PERSISTED, steps=interrupt))
    assert everything(root) == before
    assert read_journal(access.journal_directory).open == ()


def test_a_file_of_somebody_else_stops_all_before_anything_is_changed(
    pg18: RealServer, access: ServerAccess, root: Path
) -> None:
    put(root, SYSCTLS, "vm.swappiness = 30")
    before = everything(root)
    with pytest.raises(OwnershipError, match="already exists, and pgdyno did not write it"):
        apply_plan(access, PERSISTED)
    assert everything(root) == before
    assert read_journal(access.journal_directory).receipts == ()
    assert pg18.execute("SHOW work_mem") == [("4MB",)]


def test_after_a_restart_of_the_machine_a_revert_still_takes_the_files_away(
    pg18: RealServer, access: ServerAccess, root: Path
) -> None:
    apply_plan(access, PERSISTED)
    put(root, BOOT, "second")
    put(root, READ_AHEAD, "8192")  # as if udev did not know the device by this name any more
    drifts = {one.key: one.drift for one in server_status(access, candidates=()).entries}
    assert drifts == {
        SWAPPINESS: "the machine was restarted, but still has this value",
        READ_AHEAD: "the machine was restarted, which discarded it",
        SYSCTLS: None,
        RULES: None,
        "work_mem": None,
    }
    assert revert(access, RevertRequest()).is_complete
    assert not (root / "etc/udev").exists()
    assert list((root / "etc/sysctl.d").iterdir()) == []
    assert value_of(root, SWAPPINESS) == "10"
    assert pg18.execute("SHOW work_mem") == [("4MB",)]


@pytest.mark.parametrize("is_persisted", [False, True])
def test_nothing_is_written_behind_tuned_not_even_by_an_older_plan(
    pg18: RealServer, access: ServerAccess, root: Path, *, is_persisted: bool
) -> None:
    put(root, "/proc/812/cmdline", "/usr/sbin/tuned")
    put(root, "/etc/tuned/active_profile", "virtual-guest")
    before = everything(root)
    with pytest.raises(OwnershipError) as caught:
        apply_plan(access, dataclasses.replace(PERSISTED, is_persisted=is_persisted))
    assert caught.value.message == (
        "TuneD is active with profile virtual-guest, and would restore its own values"
    )
    assert everything(root) == before
    apply_plan(access, ApplyRequest(plan_of(work_mem="8MB")))  # PostgreSQL is not TuneD's business
    assert pg18.execute("SHOW work_mem") == [("8MB",)]
    assert revert(access, RevertRequest()).is_complete


def test_what_is_in_force_is_not_persisted_behind_tuned(access: ServerAccess, root: Path) -> None:
    apply_plan(access, ApplyRequest(with_files(plan_of(), {AUTOGROUP: "0"})))
    put(root, "/proc/812/cmdline", "/usr/sbin/tuned")
    put(root, "/etc/tuned/active_profile", "virtual-guest")
    with pytest.raises(OwnershipError, match="TuneD is active"):
        apply_plan(access, ApplyRequest(plan_of(), is_persisted=True))
    assert revert(access, RevertRequest()).is_complete


@pytest.mark.root
def test_only_root_may_persist(pg18: RealServer) -> None:
    def refusal() -> str:
        apply_request(ApplyAdvice(pg18.dsn, Figures(), allow_restart=True, is_persisted=True))
        return "not refused"

    assert as_user(str(unprivileged_user()), refusal).splitlines() == [
        "only root may change the machine's boot configuration",
        "HINT:  run pgdyno as root, or omit --persist",
    ]
