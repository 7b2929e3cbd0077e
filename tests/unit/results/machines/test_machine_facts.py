"""Facts that identify a machine."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.results.machines.test_difference_catalogue import cpus, on

from pgdyno.model.experiments.machine_comparison import MachineFact
from pgdyno.results.machines.machine_facts import instance_warning, machine_facts


@pytest.mark.parametrize(
    ("b", "said"),
    [
        ({"logical_count": 8, "core_count": 8, "is_smt_active": False}, None),
        ({"logical_count": 16, "core_count": 8, "is_smt_active": True},
         "this compares instances, not architectures: CPUs 8 and 16; SMT off and on"),
        ({"logical_count": 8, "core_count": 4, "is_smt_active": True},
         "this compares instances, not architectures: cores 8 and 4; SMT off and on"),
        ({"logical_count": 8, "core_count": 8},
         "this compares instances, not architectures: SMT off and unknown"),
    ],
)  # fmt: skip
def test_instances_are_told_from_architectures(b: dict[str, Any], said: str | None) -> None:
    a = cpus(logical_count=8, core_count=8, is_smt_active=False)
    assert instance_warning(machine_facts(a, cpus(**b))) == said


def test_of_machines_that_tell_nothing_instances_are_compared() -> None:
    assert instance_warning(machine_facts(on(), on())) == (
        "this compares instances, not architectures: CPUs unknown; cores unknown; SMT unknown"
    )


def test_what_the_machine_is_stands_apart_from_what_it_runs() -> None:
    facts = machine_facts(
        cpus(model="Intel(R) Xeon(R)", frequency_mhz=2600.0, l3_bytes=32 << 20),
        cpus(model="Arm Neoverse-N1", frequency_mhz=3000.0, l3_bytes=32 << 20),
    )
    assert facts == (
        MachineFact("processor", "Intel(R) Xeon(R)", "Arm Neoverse-N1"),
        MachineFact("frequency", "2.6 GHz", "3 GHz"),
        MachineFact("L3 cache", "32\xa0MB", "32\xa0MB"),
    )
    assert [one.is_equal for one in facts] == [False, False, True]
