"""How the last-level cache is divided, and who gets a plan for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.fix_settings import host_of, server_of
from tests.unit.host.machines import load

from pgdyno.base.facts import Fact, unknown
from pgdyno.host.cache_allocation import CacheAllocation, ControlledCache
from pgdyno.host.host import Host
from pgdyno.model.plans.plan import CACHE_GROUP, CACHE_MOUNT, Layer, Plan
from pgdyno.plan import levers
from pgdyno.plan.engine.planner import PlanRequest, context_of, make_plan
from pgdyno.plan.levers._contract import State

NAME, MB = "cache_allocation", 1 << 20
LEVER = levers.load()[NAME]
BY_NAME = PlanRequest(named=(NAME,))
EVERYTHING = PlanRequest(layers=tuple(Layer))
CDP = load("intel-cat-cdp").inspect()
ELEVEN_PARTS = ControlledCache(groups_at_most=16, mask=0x7FF, least_parts=2, shared_parts=0x600)
"""The last-level cache of a Skylake server."""


def divisible(
    caches: Mapping[str, ControlledCache] | None = None,
    schemata: Mapping[str, str] | None = None,
    features: tuple[str, ...] = ("cat_l3",),
    occupied: tuple[str, ...] = ("",),
    more_groups: tuple[str, ...] = (),
) -> Host:
    """Return the reference host with caches that can be divided; None: not mounted."""
    divided = schemata or {}
    groups = (*filter(None, divided), *more_groups)
    allocation = CacheAllocation(caches is not None, caches or {}, divided, occupied, groups)
    host = host_of()
    cpu = replace(
        host.cpu, isa_features=Fact(features, "/proc/cpuinfo"), l3_bytes=Fact(22 * MB, "/sys/devices")
    )
    return replace(host, cpu=cpu, cache_allocation=Fact(allocation, "/sys/fs/resctrl"))


def planned(host: Host, request: PlanRequest = BY_NAME) -> dict[str, str]:
    return {line.change.key: line.change.value for line in plan_of(host, request).lines}


def plan_of(host: Host, request: PlanRequest = BY_NAME) -> Plan:
    return make_plan(host, server_of(), request)


def why_not(host: Host, request: PlanRequest = BY_NAME) -> str:
    (reason,) = (one.reason for one in plan_of(host, request).skipped if one.lever == NAME)
    return reason


DIRECTORY = server_of().data_directory.or_else("")


def test_with_cdp_data_leave_parts_to_code_that_no_device_fills() -> None:
    (line,) = plan_of(CDP).lines
    assert line.change.kind == CACHE_GROUP
    assert line.change.key == "/sys/fs/resctrl/pgdyno/schemata"
    # 55 MB in 20 parts of 2.75 MB: four hold 10 MB. Devices fill the two upper ones, so it is the lower four.
    assert line.change.value == f"L3CODE:0=fffff;1=fffff L3DATA:0=ffff0;1=ffff0 for {DIRECTORY}"
    assert line.reason == (
        "4 of 20 parts, 2816kB each, are reserved for code: it has at most 10MB, "
        "and the server's data no longer evicts it"
    )
    assert (line.layer, line.risk) == (Layer.MICROARCHITECTURE, "shared")


def test_code_gets_a_quarter_of_the_cache_at_most() -> None:
    halves = {name: replace(ELEVEN_PARTS, least_parts=1) for name in ("L3CODE", "L3DATA")}
    host = divisible(halves, {"": "L3CODE:0=7ff L3DATA:0=7ff"}, ("cat_l3", "cdp_l3"))
    # 22 MB in 11 parts of 2 MB: five would hold 10 MB, a quarter is two.
    assert planned(host) == {
        "/sys/fs/resctrl/pgdyno/schemata": f"L3CODE:0=7ff L3DATA:0=7fc for {DIRECTORY}",
    }


def test_without_cdp_other_tasks_get_the_parts_that_devices_fill_and_the_server_the_rest() -> None:
    host = divisible({"L3": replace(ELEVEN_PARTS, shared_parts=0x600)}, {"": "L3:0=7ff;1=7ff"})
    assert planned(host) == {
        "/sys/fs/resctrl/pgdyno/schemata": f"L3:0=1ff;1=1ff for {DIRECTORY}",
        "/sys/fs/resctrl/schemata": "L3:0=600;1=600",
    }


def test_an_unmounted_file_system_is_mounted_first_with_cdp_if_there_is_any() -> None:
    (line,) = plan_of(divisible(features=("cat_l3", "cdp_l3"))).lines
    assert (line.change.kind, line.change.key, line.change.value) == (CACHE_MOUNT, "/sys/fs/resctrl", "cdp")
    assert planned(divisible()) == {"/sys/fs/resctrl": "without cdp"}


def test_what_an_unmounted_file_system_can_divide_is_not_guessed() -> None:
    assert why_not(divisible(features=("fp", "asimd", "atomics"))) == (
        "whether /sys/fs/resctrl can divide the last-level cache is known only when it is mounted: "
        "mount -t resctrl resctrl /sys/fs/resctrl, then plan again"
    )


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (
            replace(host_of(), cpu=CDP.cpu, cache_allocation=unknown("no such file", "/sys/fs/resctrl")),
            (
                "not available: the processor or this kernel cannot divide caches "
                "(/sys/fs/resctrl: no such file)"
            ),
        ),
        (
            divisible({"L3": ELEVEN_PARTS}, {"": "L3:0=7ff", "batch": "L3:0=f"}),
            "other groups already divide or monitor the caches: batch",
        ),
        (
            divisible({"L3": ELEVEN_PARTS}, {"": "L3:0=7ff"}, more_groups=("locked", "mon_groups/watched")),
            "other groups already divide or monitor the caches: locked, mon_groups/watched",
        ),
        (
            divisible({"L3": ELEVEN_PARTS}, {"": "L3:0=7ff"}, ("cat_l3",), ("pgdyno",), ("pgdyno",)),
            "/sys/fs/resctrl/pgdyno has processes: no readable division",
        ),
        (
            divisible({"L3": ELEVEN_PARTS}, {"": "L3:0=7ff", "pgdyno": "L3:0=f"}, occupied=("",)),
            (
                "/sys/fs/resctrl/pgdyno remains from a stopped server: pgdyno revert, or rmdir it, "
                "then plan again"
            ),
        ),
        (
            divisible({"L3": ELEVEN_PARTS}, {"": "L3:0=7ff"}, ("cat_l3", "cdp_l3")),
            (
                "/sys/fs/resctrl is mounted without cdp, which this processor supports: unmount it, then "
                "plan again"
            ),
        ),
        (
            divisible({"L3": replace(ELEVEN_PARTS, groups_at_most=1)}, {"": "L3:0=7ff"}),
            (
                "not available: too few parts or groups: the cache has 11 parts, of which devices fill 2, "
                "and the processor supports 1 groups"
            ),
        ),
        (
            divisible({"L2": ELEVEN_PARTS}, {"": "L2:0=7ff"}, ("cat_l2",)),
            "not available: the last-level cache cannot be divided here",
        ),
    ],
)
def test_it_says_why_it_plans_nothing(host: Host, reason: str) -> None:
    assert why_not(host) == reason


def test_all_layers_do_not_plan_it_and_say_how_to() -> None:
    assert planned(CDP).keys() == {"/sys/fs/resctrl/pgdyno/schemata"}
    assert NAME not in {line.change.lever for line in plan_of(CDP, EVERYTHING).lines}
    assert why_not(CDP, EVERYTHING) == "possible here, but planned only on request: --lever cache_allocation"


def test_named_levers_are_planned_alone_whatever_their_layer() -> None:
    plan = make_plan(host_of(), server_of(), PlanRequest(named=("shared_buffers", "swappiness")))
    assert {line.change.lever for line in plan.lines} == {"shared_buffers", "swappiness"}


def test_a_plan_that_restarts_the_server_leaves_it_for_later() -> None:
    both = PlanRequest(named=("shared_buffers", NAME))
    host = divisible({"L3": ELEVEN_PARTS}, {"": "L3:0=7ff"})
    assert why_not(host, both) == (
        "other planned changes restart the server, which ends a division: apply them first"
    )


def test_only_root_divides() -> None:
    assert why_not(CDP, replace(BY_NAME, may_change_host=False)) == (
        "not available: only root may change the machine, and not in a container"
    )


def test_its_state_follows_the_group_and_its_tasks() -> None:
    group = {"": "L3:0=7ff", "pgdyno": "L3:0=1ff"}
    states = {
        "absent": host_of(),
        "not mounted": divisible(),
        "whole": divisible({"L3": ELEVEN_PARTS}, {"": "L3:0=7ff"}),
        "divided": divisible({"L3": ELEVEN_PARTS}, group, occupied=("", "pgdyno")),
        "left": divisible({"L3": ELEVEN_PARTS}, group),
    }
    found = {name: LEVER.detect(context_of(host, server_of(), BY_NAME)) for name, host in states.items()}
    assert {name: one.state for name, one in found.items()} == {
        "absent": State.ABSENT,
        "not mounted": State.OFF,
        "whole": State.OFF,
        "divided": State.ON,
        "left": State.PARTIAL,
    }
    assert found["not mounted"].detail == "cat_l3; /sys/fs/resctrl is not mounted"
    assert found["whole"].detail == "L3 has 11 parts for 16 groups"
    assert found["left"].detail == "/sys/fs/resctrl/pgdyno has L3:0=1ff, but contains no process"
