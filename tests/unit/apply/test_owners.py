"""Nothing is written behind a program that would set its own values again."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_settings import host_of, server_of

from pgdyno.base.errors import OwnershipError
from pgdyno.base.facts import Fact
from pgdyno.host.files.tree import Tree
from pgdyno.host.host import Host, Owner
from pgdyno.host.machine.owners import check_owners
from pgdyno.model.plans.plan import Layer, Plan
from pgdyno.plan.advise import AdviseRequest, advise
from pgdyno.plan.engine.planner import PlanRequest, make_plan
from pgdyno.plan.engine.resources import Figures

SWAPPINESS = "/proc/sys/vm/swappiness"
FREQUENCIES = ("/sys/devices/system/cpu/cpufreq/*/*",)
TUNED = Owner("TuneD", "is active with profile balanced", ("*",), "pgdyno advise --format tuned")
EVERYTHING = PlanRequest(figures=Figures(connections=20), layers=tuple(Layer), with_unmeasured=True)


def owned_by(*owners: Owner) -> Host:
    return replace(host_of(), owners=Fact(owners, "/proc"))


def levers(plan: Plan) -> set[str]:
    return {line.change.lever for line in plan.lines}


def test_every_lever_that_writes_stands_back_for_tuned() -> None:
    plan = make_plan(owned_by(TUNED), server_of(), EVERYTHING)
    assert plan.host_changes == ()
    reasons = {one.lever: one.reason for one in plan.skipped}
    assert reasons["swappiness"] == (
        "not available: TuneD is active with profile balanced, and would restore its own values: "
        "pgdyno advise --format tuned"
    )


def test_settings_of_postgresql_are_not_its_business() -> None:
    alone = make_plan(host_of(), server_of(), EVERYTHING)
    beside = make_plan(owned_by(TUNED), server_of(), EVERYTHING)
    assert beside.settings == alone.settings
    assert beside.settings != {}


def test_only_the_levers_whose_files_are_owned_stand_back() -> None:
    daemon = Owner("power-profiles-daemon", "runs", FREQUENCIES, "stop it")
    alone, beside = (make_plan(host, server_of(), EVERYTHING) for host in (host_of(), owned_by(daemon)))
    assert levers(alone) - levers(beside) == {"cpu_governor", "energy_preference"}


def test_a_file_for_tuned_is_written_as_if_it_were_not_there() -> None:
    profile = AdviseRequest(EVERYTHING, "tuned")
    text = advise(owned_by(TUNED), server_of(), profile).text
    assert text == advise(host_of(), server_of(), profile).text
    assert "vm.swappiness=10\n" in text


@pytest.mark.parametrize("name", ["text", "json"])
def test_a_plan_as_apply_would_carry_it_out_says_who_is_in_the_way(name: str) -> None:
    text = advise(owned_by(TUNED), server_of(), AdviseRequest(EVERYTHING, name, width=1000)).text
    assert "TuneD is active with profile balanced, and would restore its own values" in text


@pytest.fixture
def machine(tmp_path: Path) -> Tree:
    """A machine on which TuneD runs."""
    (tmp_path / "proc/812").mkdir(parents=True)
    (tmp_path / "proc/812/cmdline").write_text("/usr/sbin/tuned\0-l\0-P\0")
    (tmp_path / "etc/tuned").mkdir(parents=True)
    (tmp_path / "etc/tuned/active_profile").write_text("virtual-guest\n")
    return Tree(tmp_path)


def test_a_plan_from_before_it_ran_is_refused(machine: Tree) -> None:
    with pytest.raises(OwnershipError) as caught:
        check_owners(machine, [SWAPPINESS])
    assert str(caught.value) == (
        "TuneD is active with profile virtual-guest, and would restore its own values\n"
        "DETAIL:  requested: vm.swappiness\n"
        "HINT:  pgdyno advise --layers all --format tuned writes a profile for it; or stop it: tuned-adm off"
    )


def test_a_plan_that_leaves_the_machine_alone_is_not_refused(machine: Tree) -> None:
    with does_not_raise():
        check_owners(machine, [])
