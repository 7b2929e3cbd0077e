"""Which servers stand beside the plan, and what is said where there is no room for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.plan.engine.test_sharing_memory import GB, MB, MEMORY

from pgdyno.accelerate.arms import Arms, Attributed, arms_of
from pgdyno.measure.design.parts import Attribute
from pgdyno.model.plans.plan import HUGE_PAGES, SERVER, SETTING, Change, Effect, Layer, Plan, PlanLine, Risk
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.engine.sharing import Memory

POOL = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"


def line(layer: Layer, kind: str, key: str, value: str, lever: str = "some") -> PlanLine:
    return PlanLine(Change(lever, kind, key, None, value, Effect.RESTART), layer, "", "", Risk.SAFE, "")


BUFFERS = line(Layer.APPLICATION, SETTING, "shared_buffers", "6016MB")
GENERIC = line(Layer.APPLICATION, SETTING, "plan_cache_mode", "force_generic_plan")
PAGES = line(Layer.SYSTEM, HUGE_PAGES, POOL, "3107")
BUILD = line(Layer.COMPILER, SERVER, "server", "built-00000000000a")
LARGE = Memory(64 * GB, 615 * MB, MEMORY.size_of, MEMORY.buffers_of)


def arms(
    *lines: PlanLine,
    memory: Memory = LARGE,
    attribute: Attribute | None = None,
    worth: Mapping[str, float] | None = None,
    no_time: str = "",
) -> Arms:
    plan = Plan(lines, (), (), None)
    attributed = None if attribute is None else Attributed(attribute, worth or {})
    return arms_of(Variant("default"), plan, memory, attributed=attributed, no_time=no_time)


def names(found: Arms) -> list[str]:
    return [one.name for one in found.variants]


def test_what_is_never_applied_is_left_out_in_a_third_server() -> None:
    found = arms(BUFFERS, GENERIC)
    assert [(one.name, one.settings) for one in found.variants] == [
        ("default", {}),
        ("without-plan_cache_mode", {"shared_buffers": "6016MB"}),
        ("plan", {"shared_buffers": "6016MB", "plan_cache_mode": "force_generic_plan"}),
    ]
    assert found.notes == ()


@pytest.mark.parametrize("lines", [(BUFFERS,), (GENERIC,)])
def test_there_is_no_third_server_without_such_a_setting_or_with_nothing_else(lines: tuple[PlanLine]) -> None:
    assert names(arms(*lines)) == ["default", "plan"]


def test_layers_are_left_out_and_taken_alone_where_that_is_asked_for() -> None:
    found = arms(BUFFERS, GENERIC, PAGES, BUILD, attribute=Attribute.LAYERS)
    assert names(found) == [
        "default", "plan", "without-plan_cache_mode",
        "without-application", "only-application", "without-system", "only-system",
        "without-compiler", "only-compiler",
    ]  # fmt: skip
    servers = {one.name: one.server for one in found.variants}
    assert servers["without-compiler"] is None
    assert servers["only-compiler"] == "built-00000000000a"
    assert servers["only-system"] is None
    assert servers["without-plan_cache_mode"] == "built-00000000000a"
    settings = {one.name: one.settings for one in found.variants}
    assert settings["only-application"] == {
        "shared_buffers": "6016MB", "plan_cache_mode": "force_generic_plan", "huge_pages": "off"
    }  # fmt: skip
    assert settings["without-application"].keys() == {POOL, "huge_pages"}


def test_levers_are_taken_apart_with_the_pool_beside_its_setting() -> None:
    pages = line(Layer.APPLICATION, SETTING, "huge_pages", "on", lever="huge_pages")
    pool = replace(PAGES, change=replace(PAGES.change, lever="huge_page_pool"))
    buffers = replace(BUFFERS, change=replace(BUFFERS.change, lever="shared_buffers"))
    found = arms(buffers, pages, pool, attribute=Attribute.LEVERS)
    assert names(found) == [
        "default", "plan",
        "without-shared_buffers", "only-shared_buffers", "without-huge_page_pool", "only-huge_page_pool",
    ]  # fmt: skip
    settings = {one.name: one.settings for one in found.variants}
    assert settings["only-huge_page_pool"]["huge_pages"] == "on"
    assert settings["without-huge_page_pool"] == {"shared_buffers": "6016MB", "huge_pages": "off"}


def test_many_levers_are_seven_parts_and_the_profile_says_which_stay_apart() -> None:
    lines = [line(Layer.APPLICATION, SETTING, f"setting_{n}", "on", lever=f"lever_{n}") for n in range(9)]
    found = arms(*lines, attribute=Attribute.LEVERS, worth={"lever_8": 0.3, "lever_7": 0.1})
    alone = [one for one in names(found) if one.startswith("only-")]
    assert alone == [
        f"only-{one}" for one in ("lever_8", "lever_7", *(f"lever_{n}" for n in range(4)), "others")
    ]
    others = next(one for one in found.variants if one.name == "only-others")
    assert others.settings.keys() == {"setting_4", "setting_5", "setting_6"}
    assert found.notes == (
        '"others" holds the changes with the least potential by the profile: setting_4, setting_5, setting_6',
    )


def test_more_servers_than_fit_have_smaller_buffers_which_is_said() -> None:
    found = arms(BUFFERS, GENERIC, PAGES, memory=MEMORY, attribute=Attribute.LAYERS)
    buffers = {one.name: one.gucs.get("shared_buffers") for one in found.variants}
    smaller = buffers["plan"]
    assert smaller is not None
    assert int(smaller.removesuffix("MB")) < 6016
    assert buffers == {
        "default": None,
        "plan": smaller,
        "without-plan_cache_mode": smaller,
        "without-application": None,
        "only-application": smaller,
        "without-system": smaller,
        "only-system": None,
    }
    assert found.notes[0] == (
        f"shared_buffers were {smaller.removesuffix('MB')} MB instead of the plan's 6016 MB, so that 7 "
        "servers fit into memory together; the data, 615 MB, fits into either"
    )


def test_two_servers_are_measured_where_three_do_not_fit() -> None:
    found = arms(BUFFERS, GENERIC, memory=MEMORY)
    assert names(found) == ["default", "plan"]
    assert found.variants[1].gucs["shared_buffers"] == "6016MB"
    (note,) = found.notes
    assert note == (
        "the plan without plan_cache_mode was not measured: three servers do not fit into memory together"
    )


def test_two_servers_are_measured_where_there_is_no_time_for_three() -> None:
    found = arms(BUFFERS, GENERIC, no_time="three servers take about 6 minutes")
    assert names(found) == ["default", "plan"]
    assert found.notes == (
        "the plan without plan_cache_mode was not measured: three servers take about 6 minutes",
    )


def test_the_plan_as_applied_is_not_measured_twice_under_two_names() -> None:
    found = arms(GENERIC, PAGES, attribute=Attribute.LAYERS)
    assert "without-plan_cache_mode" not in names(found)
    assert "without-application" in names(found)


def test_a_plan_of_one_part_is_said_not_to_be_taken_apart() -> None:
    found = arms(BUFFERS, GENERIC, attribute=Attribute.LAYERS)
    assert names(found) == ["default", "without-plan_cache_mode", "plan"]
    assert found.notes == ("the plan was not split into parts: all changes belong to application",)
