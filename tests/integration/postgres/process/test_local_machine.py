"""While one pgdyno of root holds the machine, none of another home finds a value that is only a trial's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_machine import SWAPPINESS, Machine
from tests.fix_servers import RealServer
from tests.integration.journal_support import access_to, plan_of, with_files

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.base.errors import LockHeldError
from pgdyno.postgres.process.local_machine import machine_claimed

pytestmark = [pytest.mark.server, pytest.mark.root]


@pytest.fixture
def value(machine: Machine) -> Iterator[str]:
    """A value of vm.swappiness that the machine does not have, while somebody else holds the machine."""
    with machine_claimed(is_wanted=True):
        yield machine.others()[SWAPPINESS]


@pytest.mark.usefixtures("pg18_bin")
def test_a_trial_that_sets_kernel_files_waits_for_no_other_home(value: str, home: Path) -> None:
    before = Path(SWAPPINESS).read_text()
    variants = ("default", f"other:vm.swappiness={value}")
    load = ("--workload", "pgbench-select", "--scale", "1", "--embedded", "--blocks", "1", "--as-booted")
    done = pgdyno("compare", *variants, *load, PGDYNO_HOME=f"{home}/other")
    assert done.returncode == 4
    assert "another pgdyno process is making changes on this host" in done.stderr
    assert f"process {os.getpid()} holds /run/pgdyno.lock" in done.stderr
    assert Path(SWAPPINESS).read_text() == before


def test_apply_changes_nothing_meanwhile(value: str, scratch_pg18: RealServer, tmp_path: Path) -> None:
    before = Path(SWAPPINESS).read_text()
    access = access_to(scratch_pg18, tmp_path / "journal")
    with pytest.raises(LockHeldError):
        apply_plan(access, ApplyRequest(with_files(plan_of(work_mem="5MB"), {SWAPPINESS: value})))
    assert Path(SWAPPINESS).read_text() == before
    assert scratch_pg18.execute("SHOW work_mem") == [("4MB",)]
    assert not (tmp_path / "journal").exists()


def test_what_changes_no_file_of_the_kernel_is_not_kept_waiting(
    value: str, scratch_pg18: RealServer, tmp_path: Path
) -> None:
    access = access_to(scratch_pg18, tmp_path / "journal")
    assert apply_plan(access, ApplyRequest(plan_of(work_mem="5MB"))).outcomes
    assert scratch_pg18.execute("SHOW work_mem") == [("5MB",)]
