"""Which levers servers that take turns can differ in."""

from __future__ import annotations

import pytest

from pgdyno.model.plans.plan import Layer, Risk
from pgdyno.plan.engine.metadata import LeverMetadata, Maturity

IDLE = "/sys/devices/system/cpu/*/cpuidle/state1/disable"
POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
SWAPPINESS = "/proc/sys/vm/swappiness"


def lever(*files: str, **given: object) -> LeverMetadata:
    return LeverMetadata("x", "x", Layer.SYSTEM, Risk.SHARED, Maturity.STABLE, files=files, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "takes_turns"),
    [
        (lever(), True),
        (lever(POOL), True),
        (lever(POOL, SWAPPINESS), False),
        (lever(IDLE), True),
        (lever(SWAPPINESS), False),
        (lever(SWAPPINESS, is_instant=True), True),
        (lever(SWAPPINESS, is_instant=True, switch_s=0.005), True),
        (lever(SWAPPINESS, is_instant=True, switch_s=0.02), False),
    ],
)
def test_a_lever_takes_turns_if_no_residue_is_measured(one: LeverMetadata, *, takes_turns: bool) -> None:
    assert one.takes_turns is takes_turns


def test_files_that_a_lever_only_reads_decide_whether_it_applies_if_it_writes_none() -> None:
    assert lever(reads=(SWAPPINESS,)).watched == (SWAPPINESS,)
    assert lever(IDLE, reads=(SWAPPINESS,)).watched == (IDLE,)
