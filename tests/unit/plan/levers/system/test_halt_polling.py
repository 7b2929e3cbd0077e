"""halt_polling: in guests of KVM by haltpoll's parameters, elsewhere by what a CPU's latency may be."""

from __future__ import annotations

import pytest
from tests.fix_settings import host_of, server_of

from pgdyno.host.host import Host
from pgdyno.model.plans.plan import Layer, Plan
from pgdyno.model.variants.variant import Variant
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import PlanRequest, make_plan, plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.engine.sharing import not_shareable
from pgdyno.plan.levers._contract import PlanContext, Skipped, State

LEVER = levers.load()["halt_polling"]
PARAMETERS = "/sys/module/haltpoll/parameters/guest_halt_poll_"
DRIVER = "/sys/devices/system/cpu/cpuidle/current_driver"
LATENCIES = [f"/sys/devices/system/cpu/cpu{number}/power/pm_qos_resume_latency_us" for number in (0, 1)]
BOOTED = {
    f"{PARAMETERS}ns": "0",
    f"{PARAMETERS}allow_shrink": "Y",
    f"{PARAMETERS}grow_start": "50000",
    DRIVER: "haltpoll",
    **dict.fromkeys(LATENCIES, "0"),
}
REAL = {DRIVER: "intel_idle", **dict.fromkeys(LATENCIES, "0")}


def guest(**parameters: str) -> Host:
    changed = {f"{PARAMETERS}{name}": value for name, value in parameters.items()}
    return host_of(virtualisation="kvm", kernel_files={**BOOTED, **changed})


def context(host: Host) -> PlanContext:
    server = server_of()
    return PlanContext(
        EffectiveSettings(server), resources_of(host, server, Figures()), host=proven_host(host, server)
    )


def planned(host: Host) -> dict[str, str]:
    outcome = plan_one(LEVER, context(host))
    assert not isinstance(outcome, Skipped), outcome.reason
    return {line.change.key: line.change.value for line in outcome}


def skipped(host: Host) -> str:
    outcome = plan_one(LEVER, context(host))
    assert isinstance(outcome, Skipped), outcome
    return outcome.reason


def test_a_guest_of_kvm_polls_for_200_microseconds_at_once_and_for_good() -> None:
    assert list(planned(guest()).items()) == [
        (f"{PARAMETERS}grow_start", "200000"),
        (f"{PARAMETERS}allow_shrink", "N"),
        (f"{PARAMETERS}ns", "200000"),
    ]
    assert planned(host_of(virtualisation="container:docker on kvm", kernel_files=BOOTED))


@pytest.mark.parametrize("length", ["200000", "500000"])
def test_a_guest_that_polls_as_long_already_is_left_alone(length: str) -> None:
    assert skipped(guest(ns=length)) == f"idle CPUs already poll for {length} ns"
    assert LEVER.detect(context(guest(ns=length))).state is State.ON
    assert LEVER.detect(context(guest())).state is State.OFF


def test_the_module_on_another_hypervisor_is_left_alone() -> None:
    host = host_of(virtualisation="xen", kernel_files=BOOTED)
    assert skipped(host) == "haltpoll is for KVM guests, and this is a guest of: xen"


def test_a_guest_without_the_module_is_told_how_to_load_it_and_what_that_does() -> None:
    host = host_of(virtualisation="kvm", kernel_files={**REAL, DRIVER: "none"})
    assert skipped(host) == (
        "this KVM guest has no polling driver. modprobe cpuidle_haltpoll loads one; it also disables "
        "the host's polling for this guest, so measure before and after: pgdyno inspect --probe. "
        "pgdyno loads no modules"
    )


def test_a_real_machine_allows_no_latency_on_any_cpu() -> None:
    assert planned(host_of(kernel_files=REAL)) == dict.fromkeys(LATENCIES, "n/a")
    done = {**REAL, **dict.fromkeys(LATENCIES, "n/a")}
    assert skipped(host_of(kernel_files=done)) == "intel_idle is already not allowed any latency"


def test_without_a_driver_there_is_nothing_to_keep_awake() -> None:
    host = host_of(kernel_files={**REAL, DRIVER: "none"})
    assert skipped(host) == "no driver puts idle CPUs to sleep (cpuidle driver: none)"


def plan(host: Host, *layers: Layer) -> Plan:
    return make_plan(host, server_of(), PlanRequest(layers=layers))


def levers_in(made: Plan) -> set[str]:
    return {line.change.lever for line in made.lines}


def test_with_idle_states_one_of_them_keeps_cpus_awake() -> None:
    host = host_of(kernel_files=REAL)
    assert "idle_states" in levers_in(plan(host, Layer.HARDWARE))
    both = plan(host, Layer.SYSTEM, Layer.HARDWARE)
    assert levers_in(both) >= {"halt_polling"}
    assert "idle_states" not in levers_in(both)
    reasons = {one.lever: one.reason for one in both.skipped}
    assert reasons["idle_states"] == (
        "idle CPUs do not sleep: pm_qos_resume_latency_us is n/a on all of them"
    )


def test_a_plan_that_touches_wake_ups_says_so() -> None:
    assert plan(guest(), Layer.SYSTEM).touches_wakeups
    assert not plan(guest(ns="200000"), Layer.SYSTEM).touches_wakeups
    assert not plan(guest(), Layer.SYSTEM).of_layers([Layer.APPLICATION]).touches_wakeups


def test_it_can_be_switched_from_turn_to_turn() -> None:
    polling = Variant("polling", planned(guest()))
    assert not_shareable([Variant("default"), polling]) == ()


def test_levers_whose_worth_depends_on_wake_ups_say_so() -> None:
    marked = {name for name, module in levers.load().items() if module.LEVER.touches_wakeups}
    assert marked == {
        "halt_polling",
        "idle_states",
        "busy_poll",
        "sched_batch",
        "io_method",
        "commit_delay",
    }
