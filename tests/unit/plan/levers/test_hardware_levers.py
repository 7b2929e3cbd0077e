"""What is special to each lever of the hardware layer; common rules are in tests/contract."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from tests.fix_settings import host_of, server_of

from pgdyno.base.facts import Fact, unknown
from pgdyno.host.host import Host
from pgdyno.model.plans.plan import Layer
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import PlanRequest, make_plan, plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.levers._contract import Detected, PlanContext, PlanLine, Skipped, State
from pgdyno.postgres.server import Atomics, Program, Server

LEVERS = levers.load()
CPUS = "/sys/devices/system/cpu"
GOVERNORS = [f"{CPUS}/cpufreq/policy{number}/scaling_governor" for number in (0, 1)]
PREFERENCES = [f"{CPUS}/cpufreq/policy{number}/energy_performance_preference" for number in (0, 1)]


def context(
    host: Host | None = None, server: Server | None = None, planned_files: Mapping[str, str] | None = None
) -> PlanContext:
    where, asked = host or host_of(), server or server_of()
    return PlanContext(
        settings=EffectiveSettings(asked),
        resources=resources_of(where, asked, Figures()),
        host=proven_host(where, asked),
        planned_files=planned_files or {},
    )


def lines(lever: str, ctx: PlanContext) -> dict[str, PlanLine]:
    outcome = plan_one(LEVERS[lever], ctx)
    assert not isinstance(outcome, Skipped), outcome.reason
    return {line.change.key: line for line in outcome}


def skipped(lever: str, ctx: PlanContext) -> str:
    outcome = plan_one(LEVERS[lever], ctx)
    assert isinstance(outcome, Skipped), outcome
    return outcome.reason


def with_cpu(virtualisation: str = "none", **facts: Any) -> Host:
    """Return the reference host with more known about its processor."""
    host = host_of(virtualisation=virtualisation)
    known = {name: Fact(value, "/sys") for name, value in facts.items()}
    return dataclasses.replace(host, cpu=dataclasses.replace(host.cpu, **known))


def with_program(**facts: Any) -> Server:
    known = {name: Fact(value, "/proc/7") for name, value in facts.items()}
    return dataclasses.replace(server_of(), program=Program(**known))


def without_files(*beginnings: str) -> Host:
    host = host_of()
    kept = {path: fact for path, fact in host.kernel_files.items() if not path.startswith(beginnings)}
    return dataclasses.replace(host, kernel_files=kept)


class TestCpuGovernor:
    def test_every_policy_that_offers_it_gets_performance(self) -> None:
        planned = lines("cpu_governor", context())
        assert {key: line.change.value for key, line in planned.items()} == dict.fromkeys(
            GOVERNORS, "performance"
        )
        line = planned[GOVERNORS[0]]
        assert line.reason == "with ondemand, a CPU may still be slow when a short statement begins"
        assert (line.change.current, line.layer) == ("ondemand", Layer.HARDWARE)

    def test_a_policy_that_does_not_offer_it_is_left_alone(self) -> None:
        offered = f"{CPUS}/cpufreq/policy0/scaling_available_governors"
        ctx = context(host_of(kernel_files={offered: "userspace ondemand"}))
        assert list(lines("cpu_governor", ctx)) == [GOVERNORS[1]]

    def test_where_it_is_in_use_there_is_nothing_to_do(self) -> None:
        ctx = context(host_of(kernel_files=dict.fromkeys(GOVERNORS, "performance")))
        assert skipped("cpu_governor", ctx) == ("the governor is performance, and no faster one is available")

    def test_a_virtual_machine_without_governors_says_so(self) -> None:
        assert skipped("cpu_governor", context(without_files(f"{CPUS}/cpufreq/"))) == (
            "not available: none of /sys/devices/system/cpu/cpufreq/*/scaling_governor is readable here"
        )


class TestEnergyPreference:
    def test_it_is_set_where_the_governor_leaves_it_alone(self) -> None:
        planned = lines("energy_preference", context(planned_files=dict.fromkeys(GOVERNORS, "performance")))
        assert {key: line.change.value for key, line in planned.items()} == dict.fromkeys(
            PREFERENCES, "performance"
        )
        assert planned[PREFERENCES[0]].reason == (
            "with balance_performance, the processor raises its frequency late to save energy"
        )

    @pytest.mark.parametrize("driver", ["intel_pstate", "amd-pstate-epp"])
    def test_in_active_mode_the_planned_governor_sets_it(self, driver: str) -> None:
        drivers = {f"{CPUS}/cpufreq/policy{number}/scaling_driver": driver for number in (0, 1)}
        ctx = context(host_of(kernel_files=drivers), planned_files=dict.fromkeys(GOVERNORS, "performance"))
        assert skipped("energy_preference", ctx) == (
            "the governor performance sets it; found: balance_performance"
        )
        assert list(lines("energy_preference", context(host_of(kernel_files=drivers)))) == PREFERENCES

    def test_the_governor_is_planned_first(self) -> None:
        plan = make_plan(host_of(), server_of(), PlanRequest(layers=(Layer.HARDWARE,), with_unmeasured=True))
        keys = [line.change.key for line in plan.lines]
        assert keys.index(GOVERNORS[1]) < keys.index(PREFERENCES[0])

    def test_a_preference_that_is_not_offered_is_not_asked_for(self) -> None:
        offered = {
            f"{CPUS}/cpufreq/policy{number}/energy_performance_available_preferences": "default power"
            for number in (0, 1)
        }
        assert skipped("energy_preference", context(host_of(kernel_files=offered))) == (
            "the preference is balance_performance, and no faster one is available"
        )


class TestIdleStates:
    def test_what_takes_100_microseconds_or_more_to_leave_is_disabled_on_every_cpu(self) -> None:
        planned = lines("idle_states", context())
        assert list(planned) == [f"{CPUS}/cpu{number}/cpuidle/state2/disable" for number in (0, 1)]
        assert {line.change.value for line in planned.values()} == {"1"}
        assert {line.reason for line in planned.values()} == {"leaving C6 takes up to 133 µs"}

    @pytest.mark.parametrize(("latency", "count"), [("99", 0), ("100", 1), ("", 0)])
    def test_the_limit_itself_is_too_long_and_an_unknown_latency_is_not(
        self, latency: str, count: int
    ) -> None:
        files = {f"{CPUS}/cpu{number}/cpuidle/state2/latency": "2" for number in (0, 1)}
        files[f"{CPUS}/cpu0/cpuidle/state1/latency"] = latency
        outcome = plan_one(LEVERS["idle_states"], context(host_of(kernel_files=files)))
        assert (0 if isinstance(outcome, Skipped) else len(outcome)) == count

    def test_shallow_states_are_left_alone(self) -> None:
        files = {f"{CPUS}/cpu{number}/cpuidle/state2/latency": "20" for number in (0, 1)}
        assert skipped("idle_states", context(host_of(kernel_files=files))) == (
            "no state takes 100 µs to leave; the slowest: 20 µs"
        )

    def test_deep_states_that_are_disabled_already_are_said_to_be(self) -> None:
        files = {f"{CPUS}/cpu{number}/cpuidle/state2/disable": "1" for number in (0, 1)}
        assert skipped("idle_states", context(host_of(kernel_files=files))) == (
            "all states that take 100 µs or more to leave are already disabled"
        )


class TestSmt:
    def detected(self, control: str, *, is_active: bool, **how: str) -> Detected:
        host = with_cpu(is_smt_active=is_active, core_count=2, logical_count=4 if is_active else 2, **how)
        files = {**host.kernel_files, f"{CPUS}/smt/control": Fact(control, f"{CPUS}/smt/control")}
        return LEVERS["smt"].detect(context(dataclasses.replace(host, kernel_files=files)))

    def test_it_is_reported_with_the_numbers(self) -> None:
        assert self.detected("on", is_active=True) == Detected(
            State.ON, "reported only: on: 4 CPUs on 2 cores"
        )

    @pytest.mark.parametrize(
        ("control", "told"),
        [
            ("off", "off, and the kernel can turn it on: echo on > /sys/devices/system/cpu/smt/control"),
            (
                "forceoff",
                "turned off in the firmware or on the kernel's command line; only there can it be turned on",
            ),
            ("notsupported", "this processor's cores have one thread each"),
            ("notimplemented", "off: 2 CPUs on 2 cores"),
        ],
    )
    def test_where_it_is_off_it_says_who_can_turn_it_on(self, control: str, told: str) -> None:
        assert self.detected(control, is_active=False) == Detected(State.OFF, f"reported only: {told}")

    def test_what_a_hypervisor_tells_may_not_be_so(self) -> None:
        assert self.detected("notsupported", is_active=False, virtualisation="kvm").detail.endswith(
            "; the hypervisor decides which values are visible here"
        )


class TestNumaClustering:
    @pytest.mark.parametrize(
        ("nodes", "sockets", "state", "told"),
        [
            (2, 2, State.OFF, "nodes 2, sockets 2: the processors are not divided"),
            (1, 2, State.OFF, "nodes 1, sockets 2: the firmware hides which memory is local"),
            (
                6,
                2,
                State.ON,
                (
                    "nodes 6, sockets 2: the firmware divides each processor (SNC, NPS); for one server "
                    "on the whole machine, undivided processors are simpler"
                ),
            ),
        ],
    )
    def test_more_nodes_than_sockets_are_divided_processors(
        self, nodes: int, sockets: int, state: State, told: str
    ) -> None:
        ctx = context(with_cpu(numa_nodes=nodes, socket_count=sockets))
        assert LEVERS["numa_clustering"].detect(ctx) == Detected(state, f"reported only: {told}")
        assert skipped("numa_clustering", ctx) == f"reported only: {told}"

    def test_a_host_that_does_not_tell_is_not_guessed_at(self) -> None:
        host = with_cpu(numa_nodes=1)
        hidden: Fact[int] = unknown("permission denied", "/sys/devices/system/cpu/cpu0/topology")
        host = dataclasses.replace(host, cpu=dataclasses.replace(host.cpu, socket_count=hidden))
        assert skipped("numa_clustering", context(host)) == (
            "not available: /sys/devices/system/cpu/cpu0/topology: permission denied"
        )


class TestMitigations:
    def test_what_is_worked_around_and_what_is_open_is_named(self) -> None:
        answers = {
            "spectre_v2": "Mitigation: Enhanced / Automatic IBRS",
            "meltdown": "Not affected",
            "gather_data_sampling": "Mitigation: Microcode",
            "mds": "Vulnerable: Clear CPU buffers attempted, no microcode",
        }
        ctx = context(with_cpu(mitigations=answers))
        told = "reported only, never changed: mitigated: gather_data_sampling, spectre_v2; open: mds"
        assert LEVERS["mitigations"].detect(ctx) == Detected(State.ON, told)

    def test_a_processor_without_faults_has_none(self) -> None:
        ctx = context(with_cpu(mitigations={"meltdown": "Not affected"}))
        assert LEVERS["mitigations"].detect(ctx) == Detected(
            State.OFF, "reported only, never changed: mitigated: none; open: none"
        )


class TestLseAtomics:
    @pytest.mark.parametrize(
        ("counted", "features", "state", "told"),
        [
            (
                Atomics(1204, 0),
                ("atomics",),
                State.ON,
                "the server's code has 1204 of the instructions inline",
            ),
            (
                Atomics(0, 9),
                ("atomics",),
                State.ON,
                (
                    "the instructions are in 9 helpers, which check the processor at every call; "
                    "compiled with -march=armv8.2-a they would be inline"
                ),
            ),
            (
                Atomics(0, 0),
                ("fp", "atomics"),
                State.OFF,
                (
                    "the processor has the instructions, but the server does not use them; "
                    "compiled with -march=armv8.2-a it would"
                ),
            ),
            (Atomics(0, 0), ("fp",), State.OFF, "the processor and the server do not have the instructions"),
        ],
    )
    def test_it_says_where_the_instructions_are(
        self, counted: Atomics, features: tuple[str, ...], state: State, told: str
    ) -> None:
        ctx = context(with_cpu(isa_features=features), with_program(atomics=counted))
        assert LEVERS["lse_atomics"].detect(ctx) == Detected(state, f"reported only: {told}")

    def test_on_other_processors_it_is_not_available(self) -> None:
        other: Fact[Atomics] = unknown("a program for a different processor", "/proc/7/exe")
        server = dataclasses.replace(server_of(), program=Program(atomics=other))
        assert skipped("lse_atomics", context(with_cpu(isa_features=("avx2",)), server)) == (
            "not available: /proc/7/exe: a program for a different processor"
        )


class TestKernelProfile:
    def told(self, *options: str) -> Detected:
        host = host_of()
        kernel = dataclasses.replace(host.kernel, profile_options=Fact(options, "/proc/config.gz"))
        return LEVERS["kernel_profile"].detect(context(dataclasses.replace(host, kernel=kernel)))

    def test_a_kernel_without_says_where_the_commands_are(self) -> None:
        assert self.told() == Detected(
            State.OFF,
            "reported only: built without a profile; docs/guides/kernel-profile.md explains how to build "
            "with one",
        )

    def test_a_kernel_that_is_configured_for_it_may_have_been_built_without_a_profile(self) -> None:
        assert self.told("CONFIG_AUTOFDO_CLANG", "CONFIG_PROPELLER_CLANG") == Detected(
            State.ON,
            "reported only: configured with CONFIG_AUTOFDO_CLANG, CONFIG_PROPELLER_CLANG; "
            "the kernel does not report whether a profile was used",
        )


class TestPrefetchers:
    def test_they_are_shown_and_never_planned(self) -> None:
        ctx = context(host_of(kernel_files={f"/dev/cpu/{cpu}/msr:0x1a4": "0x0" for cpu in (0, 1)}))
        assert LEVERS["prefetchers"].detect(ctx) == Detected(State.ON, "all are on, on 2 CPUs")
        assert skipped("prefetchers", ctx) == (
            "an experiment, not a rule: all are on, on 2 CPUs; a variant turns some off, for example "
            "/dev/cpu/0/msr:0x1a4=0x1 and so on for every CPU"
        )

    def test_those_that_somebody_has_turned_off_are_named(self) -> None:
        files = {"/dev/cpu/0/msr:0xc0000108": "0x3c0", "/dev/cpu/1/msr:0xc0000108": "0x3e1"}
        assert LEVERS["prefetchers"].detect(context(host_of(kernel_files=files))) == Detected(
            State.PARTIAL, "L1 stream, L2 up/down off on 1 of 2 CPUs"
        )

    def test_the_example_keeps_the_bits_that_have_another_meaning(self) -> None:
        ctx = context(host_of(kernel_files={"/dev/cpu/0/msr:0xc0000108": "0x3c0"}))
        assert "/dev/cpu/0/msr:0xc0000108=0x3c1 and so on" in skipped("prefetchers", ctx)

    def test_a_machine_that_shows_no_registers_says_so(self) -> None:
        assert skipped("prefetchers", context()) == (
            "not available: none of /dev/cpu/*/msr:0x1a4, /dev/cpu/*/msr:0xc0000108 is readable here"
        )
