"""What a lever may read: facts it declares, files of the kernel as planned, and sizes that fit."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.fix_settings import GB, host_of, server_of

from pgdyno.plan.engine.context import PlanContext, matches
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.resources import Figures, resources_of

SWAPPINESS = "/proc/sys/vm/swappiness"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def context(**given: Any) -> PlanContext:
    server, host = server_of(), host_of()
    resources = resources_of(host, server, Figures())
    return dataclasses.replace(PlanContext(EffectiveSettings(server), resources, host=host), **given)


@pytest.mark.parametrize(
    ("path", "pattern", "is_match"),
    [
        ("/sys/block/sda/queue/scheduler", "/sys/block/*/queue/scheduler", True),
        ("/sys/block/sda/sda1/queue/scheduler", "/sys/block/*/queue/scheduler", False),
        ("/sys/block/sda/queue", "/sys/block/*/queue/scheduler", False),
        ("/sys/devices/system/cpu/cpu12/online", "/sys/devices/system/cpu/cpu*/online", True),
    ],
)
def test_a_star_stands_for_part_of_one_name(path: str, pattern: str, *, is_match: bool) -> None:
    assert matches(path, pattern) is is_match


def test_a_file_has_the_value_that_was_planned_for_it() -> None:
    assert context().value(SWAPPINESS) == "60"
    assert context().value(THP) == "always"  # the choice in brackets
    assert context(planned_files={SWAPPINESS: "10"}).value(SWAPPINESS) == "10"
    assert context(planned_files={"/proc/none": "1"}).value("/proc/none") is None
    assert context().files("/sys/block/*/queue/scheduler") == ("/sys/block/sda/queue/scheduler",)


def test_without_a_host_there_are_no_files_and_the_reason_is_given() -> None:
    without = context(host=None)
    assert without.value(SWAPPINESS) is None
    assert without.why_unknown(without.file(SWAPPINESS)) == "the host was not inspected"
    assert without.why_unknown(without.fact("host.cpu.mitigations")) == (
        "the server is not proven to run on an inspected host"
    )
    assert without.owner_of([SWAPPINESS]) is None
    assert without.files("/sys/*") == ()


def test_a_fact_that_is_not_declared_is_a_fault_of_the_lever() -> None:
    with pytest.raises(LookupError, match=r"does not declare in LEVER\.needs or \.facts"):
        context().known("host.cpu.mitigations")
    assert context().known("host.cpu.logical_count") == 2
    assert (context().memory_bytes, context().cpu_count) == (24 * GB, 2)


def test_the_largest_size_that_fits_is_the_first_within_the_limit() -> None:
    sizes = [64 * GB, 32 * GB, 8 * GB, 4 * GB]
    assert context().largest_that_fits("shared_buffers", sizes) == 8 * GB
    assert context().largest_that_fits("shared_buffers", sizes[:2]) is None
