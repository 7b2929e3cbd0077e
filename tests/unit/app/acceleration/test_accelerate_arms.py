"""Which servers stand beside the plan, and what is said where there is no room for one."""

from __future__ import annotations

import pytest
from tests.unit.levers.engine.test_sharing_memory import GB, MB, MEMORY

from pgdyno.app.acceleration.arms import Arms, arms_of
from pgdyno.levers.engine.sharing_memory import Memory
from pgdyno.model.plans.plan import HUGE_PAGES, SERVER, SETTING, Change, Effect, Layer, Plan, PlanLine, Risk
from pgdyno.model.variants.variant import Variant

POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"


def line(layer: Layer, kind: str, key: str, value: str) -> PlanLine:
    return PlanLine(Change("some", kind, key, None, value, Effect.RESTART), layer, "", "", Risk.SAFE, "")


BUFFERS = line(Layer.APPLICATION, SETTING, "shared_buffers", "6016MB")
GENERIC = line(Layer.APPLICATION, SETTING, "plan_cache_mode", "force_generic_plan")
PAGES = line(Layer.SYSTEM, HUGE_PAGES, POOL, "3107")
BUILD = line(Layer.COMPILER, SERVER, "server", "built-00000000000a")
LARGE = Memory(64 * GB, 615 * MB, MEMORY.size_of, MEMORY.buffers_of)


def arms(*lines: PlanLine, memory: Memory = LARGE, is_attributed: bool = False, no_time: str = "") -> Arms:
    plan = Plan(lines, (), (), None)
    return arms_of(Variant("default"), plan, memory, is_attributed=is_attributed, no_time=no_time)


def names(found: Arms) -> list[str]:
    return [one.name for one in found.variants]


def test_what_is_never_applied_is_left_out_in_a_third_server() -> None:
    found = arms(BUFFERS, GENERIC)
    assert [(one.name, one.settings) for one in found.variants] == [
        ("default", {}),
        ("plan", {"shared_buffers": "6016MB", "plan_cache_mode": "force_generic_plan"}),
        ("without-plan_cache_mode", {"shared_buffers": "6016MB"}),
    ]
    assert found.notes == ()


@pytest.mark.parametrize("lines", [(BUFFERS,), (GENERIC,)])
def test_there_is_no_third_server_without_such_a_setting_or_with_nothing_else(lines: tuple[PlanLine]) -> None:
    assert names(arms(*lines)) == ["default", "plan"]


def test_layers_are_left_out_one_by_one_where_that_is_asked_for() -> None:
    found = arms(BUFFERS, GENERIC, PAGES, BUILD, is_attributed=True)
    assert names(found) == [
        "default", "plan", "without-plan_cache_mode",
        "without-application", "without-system", "without-compiler",
    ]  # fmt: skip
    servers = {one.name: one.server for one in found.variants}
    assert servers["without-compiler"] is None
    assert servers["without-plan_cache_mode"] == "built-00000000000a"


def test_more_servers_than_fit_have_smaller_buffers_which_is_said() -> None:
    found = arms(BUFFERS, GENERIC, PAGES, memory=MEMORY, is_attributed=True)
    assert {one.name: one.gucs.get("shared_buffers") for one in found.variants} == {
        "default": None,
        "plan": "3264MB",
        "without-plan_cache_mode": "3264MB",
        "without-application": None,
        "without-system": "3264MB",
    }
    assert found.notes[0] == (
        "shared_buffers were 3264 MB instead of the plan's 6016 MB, so that 5 servers fit into memory beside "
        "each other; the data, 615 MB, fits into either"
    )


def test_two_servers_are_measured_where_three_do_not_fit() -> None:
    found = arms(BUFFERS, GENERIC, memory=MEMORY)
    assert names(found) == ["default", "plan"]
    assert found.variants[1].gucs["shared_buffers"] == "6016MB"
    (note,) = found.notes
    assert note == (
        "the plan without plan_cache_mode was not measured: three servers do not fit into memory beside "
        "each other"
    )


def test_two_servers_are_measured_where_there_is_no_time_for_three() -> None:
    found = arms(BUFFERS, GENERIC, no_time="three servers take about 6 minutes")
    assert names(found) == ["default", "plan"]
    assert found.notes == (
        "the plan without plan_cache_mode was not measured: three servers take about 6 minutes",
    )


def test_the_same_configuration_is_not_measured_under_two_names() -> None:
    found = arms(GENERIC, PAGES, is_attributed=True)
    assert names(found) == ["default", "plan", "without-application", "without-system"]
