"""``pgdyno run huge-pages`` for real, as root: small servers on all kinds of pages at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_machine import POOL, Machine, nothing_beside

from pgdyno.base.errors import ServerStartError
from pgdyno.host.cpu_idling import AS_BOOTED_GIVEN
from pgdyno.measure import bundled_study as contract
from pgdyno.measure.conditions import Conditions
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.postgres.process.registry import embedded
from pgdyno.studies.bundled import huge_pages
from pgdyno.studies.run import find_study, run_bundled, sized

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]

LARGE = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
SMALLEST = contract.Machine(cpus=2, available_bytes=3 << 30)  # shared_buffers of 128 MB
MOST_THEFTS = 10
SHORT = replace(huge_pages.STUDY.design, block_s=1.25, warmup_s=0.2, rounds=1)


class Silent:
    """Progress that nobody watches."""

    def step(self, what: str) -> None: ...

    def advance(self, done_s: float, total_s: float) -> None: ...


@pytest.fixture
def measured(machine: Machine) -> tuple[Machine, Experiment]:
    """One round of the smallest grid: reads and writes by two clients on the smallest database."""
    found = sized(find_study("huge-pages"), contract.Sizing(clients=2))
    sizing = replace(found, machine=SMALLEST, rounds=1)
    cells = {name: huge_pages.workloads(sizing)[name] for name in ("select-64MB-2", "tpcb-64MB-2")}
    conditions = Conditions(embedded(), cells, SHORT, as_booted=AS_BOOTED_GIVEN)
    for _ in range(MOST_THEFTS):
        try:
            return machine, run_bundled("huge-pages", conditions, {}, Silent(), sizing)
        except ServerStartError:  # another test's server has started in between, and taken pages
            continue
    pytest.fail("the servers got no huge pages")


@nothing_beside
def test_every_arm_has_its_pages_and_no_others_and_the_machine_is_given_back(
    measured: tuple[Machine, Experiment],
) -> None:
    machine, experiment = measured
    names = {variant.name for variant in experiment.variants}
    assert {"4kB", "thp-private", "2MB"} <= names
    for block in experiment.blocks:
        on_huge_pages = {arm.variant: arm.values["huge_page_bytes"] for arm in block.arms}
        page_tables = {arm.variant: arm.values["page_table_bytes"] for arm in block.arms}
        assert on_huge_pages["4kB"] == 0
        assert on_huge_pages["2MB"] > 60 << 20
        assert page_tables["2MB"] < page_tables["4kB"]
        if "thp-shared" in names:
            assert on_huge_pages["thp-shared"] > 30 << 20
        if "1GB" in names:
            assert on_huge_pages["1GB"] == 1 << 30
    assert {block.workload for block in experiment.blocks} == {"select-64MB-2", "tpcb-64MB-2"}
    assert experiment.cells["tpcb-64MB-2"].clients == 2
    assert Path(POOL).read_text() == machine.snapshot()[POOL]
    if Path(LARGE).exists():
        assert Path(LARGE).read_text() == "0\n"
    effective: Mapping[tuple[str, str], str] = {
        (one.variant, one.name): one.effective for one in experiment.settings
    }
    assert effective["4kB", "huge_pages"] == "off"
    assert effective["2MB", "huge_pages"] == "on"
    assert effective["2MB", "huge_page_size"] == "2MB"
    assert effective["4kB", huge_pages.PRIVATE] == "never"
    assert effective["thp-private", huge_pages.PRIVATE] == "always"
    assert not any(name.endswith("nr_hugepages") for _, name in effective)


def test_factors_are_not_for_this_study() -> None:
    done = pgdyno("run", "huge-pages", "--embedded", "--factor", "jit=on,off")
    assert done.returncode == 2
    assert "the study huge-pages varies the pages itself" in done.stderr


def test_other_workloads_are_not_for_this_study() -> None:
    done = pgdyno("run", "huge-pages", "--embedded", "--workload", "pgbench-select")
    assert done.returncode == 2
    assert "this study has its own workloads" in done.stderr
