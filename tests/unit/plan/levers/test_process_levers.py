"""The levers of the system layer that report on the server's own process."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from tests.fix_settings import host_of, server_of

from pgdyno.base.facts import Fact
from pgdyno.host.host import Host
from pgdyno.model.plans.plan import Plan
from pgdyno.model.variants.durability import why_not_given
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import PlanRequest, context_of, plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.levers._contract import Detected, Effect, PlanContext, PlanLine, Skipped, State
from pgdyno.postgres.server import Program, Server
from pgdyno.postgres.statements import WorkloadStatements

LEVERS = levers.load()


def detected(lever: str, host: Host, server: Server) -> Detected:
    ctx = PlanContext(
        settings=EffectiveSettings(server),
        resources=resources_of(host, server, Figures()),
        host=proven_host(host, server),
    )
    return LEVERS[lever].detect(ctx)


class TestCpuPinning:
    def told(self, allowed: tuple[int, ...], online: int) -> Detected:
        host = host_of(cpus=online)
        limits = dataclasses.replace(host.limits, cpuset=Fact(allowed, "/proc/7/status"))
        return detected("cpu_pinning", dataclasses.replace(host, limits=limits), server_of())

    def test_a_server_that_may_use_all_cpus_is_not_confined(self) -> None:
        assert self.told((0, 1), 2) == Detected(State.OFF, "reported only: the server may use all 2 CPUs")

    def test_a_server_with_fewer_says_who_confines_it(self) -> None:
        assert self.told((4, 5), 8) == Detected(
            State.ON, "reported only: the server may use 2 of 8 CPUs (/proc/7/status)"
        )

    @pytest.mark.parametrize(
        ("cpus", "others", "own"),
        [(tuple(range(8)), "0-1", "2-7"), ((0, 2, 4, 6), "0", "2,4,6"), ((0, 1, 8, 9, 10), "0", "1,8-10")],
    )
    def test_it_says_how_a_fourth_of_the_cpus_is_left_to_others(
        self, cpus: tuple[int, ...], others: str, own: str
    ) -> None:
        assert self.told(cpus, len(cpus)).detail == (
            f"reported only: the server may use all {len(cpus)} CPUs; to leave {others} to others: "
            f"systemctl set-property UNIT AllowedCPUs={own}, and run local clients with taskset -c {others}; "
            f"for a single process: taskset -cp CPU PID (pg_stat_activity shows the walwriter's)"
        )


class TestSchedBatch:
    def told(self, policy: str) -> Detected:
        program = Program(scheduling_policy=Fact(policy, "/proc/7/stat"))
        return detected("sched_batch", host_of(), dataclasses.replace(server_of(), program=program))

    def test_under_the_usual_policy_it_says_how_the_server_is_started_under_the_other(self) -> None:
        assert self.told("SCHED_OTHER") == Detected(
            State.OFF,
            "the server runs under SCHED_OTHER",
        )

    def outcome(
        self, policy: str, *, is_scratch: bool, sessions: int | None = 5
    ) -> Sequence[PlanLine] | Skipped:
        program = Program(scheduling_policy=Fact(policy, "/proc/7/stat"))
        none: tuple[WorkloadStatements, ...] = ()
        statements = Fact(none, "a test") if is_scratch else None
        server = dataclasses.replace(server_of(), program=program)
        request = PlanRequest(statements=statements, sessions=sessions)
        return plan_one(LEVERS["sched_batch"], context_of(host_of(cpus=4), server, request))

    def test_a_running_server_is_left_alone_and_told_how_it_would_be_started(self) -> None:
        assert self.outcome("SCHED_OTHER", is_scratch=False) == Skipped(
            "sched_batch",
            "reported only: the server runs under SCHED_OTHER; to try SCHED_BATCH, if no other busy program "
            "uses its CPUs: CPUSchedulingPolicy=batch in its unit's [Service], or start it with "
            "chrt --batch 0 before the command (in a variant of a scratch server, "
            "process.scheduling_policy=batch)",
            ("CPUSchedulingPolicy=batch",),
        )

    def test_a_scratch_server_is_planned_to_be_started_under_it(self) -> None:
        lines = self.outcome("SCHED_OTHER", is_scratch=True)
        assert not isinstance(lines, Skipped)
        (line,) = lines
        assert (line.change.kind, line.change.key, line.change.value) == (
            "process",
            "process.scheduling_policy",
            "batch",
        )
        assert line.change.effect is Effect.RESTART
        assert line.touches_wakeups
        assert Plan(tuple(lines), (), (), None).values == {"process.scheduling_policy": "batch"}

    @pytest.mark.parametrize(("sessions", "named"), [(1, "1 session is"), (4, "4 sessions are")])
    def test_a_load_without_more_sessions_than_cpus_is_left_under_the_usual_policy(
        self, sessions: int, named: str
    ) -> None:
        assert self.outcome("SCHED_OTHER", is_scratch=True, sessions=sessions) == Skipped(
            "sched_batch",
            f"left at SCHED_OTHER: at times no more than {named} active on 4 CPUs: they hardly preempt each "
            "other, and next to other busy programs each would wait for its turn",
        )

    def test_a_load_of_unknown_sessions_is_left_under_the_usual_policy(self) -> None:
        assert self.outcome("SCHED_OTHER", is_scratch=True, sessions=None) == Skipped(
            "sched_batch",
            "left at SCHED_OTHER: it is not known whether the load has more sessions than there are CPUs",
        )

    @pytest.mark.parametrize("policy", ["SCHED_BATCH", "SCHED_RR"])
    def test_a_scratch_server_under_another_policy_is_left_alone(self, policy: str) -> None:
        assert self.outcome(policy, is_scratch=True) == Skipped(
            "sched_batch", f"the server runs under {policy}"
        )

    @pytest.mark.parametrize(("policy", "state"), [("SCHED_BATCH", State.ON), ("SCHED_RR", State.OFF)])
    def test_a_policy_that_somebody_has_chosen_is_shown(self, policy: str, state: State) -> None:
        assert self.told(policy) == Detected(state, f"the server runs under {policy}")


class TestMalloc:
    @pytest.mark.parametrize(
        ("facts", "state", "told"),
        [
            (
                {"allocator": "glibc", "malloc_variables": {}},
                State.OFF,
                (
                    "the server uses glibc's malloc; to try at the server's start: MALLOC_TOP_PAD_=67108864 "
                    "MALLOC_TRIM_THRESHOLD_=134217728 MALLOC_MMAP_THRESHOLD_=33554432, or "
                    "LD_PRELOAD=libjemalloc.so.2 with "
                    "MALLOC_CONF=tcache_max:131072,dirty_decay_ms:-1,narenas:1 "
                    "(in a variant, prefixed with env.)"
                ),
            ),
            (
                {"allocator": "glibc", "malloc_variables": {"MALLOC_ARENA_MAX": "1"}},
                State.ON,
                "the server uses glibc's malloc, started with MALLOC_ARENA_MAX=1",
            ),
            (
                {"allocator": "jemalloc", "malloc_variables": {"LD_PRELOAD": "libjemalloc.so.2"}},
                State.ON,
                "the server uses jemalloc's malloc, started with LD_PRELOAD=libjemalloc.so.2",
            ),
            ({"allocator": "musl", "malloc_variables": {}}, State.OFF, "the server uses musl's malloc"),
        ],
    )
    def test_it_says_whose_malloc_it_is_and_what_to_try(
        self, facts: dict[str, Any], state: State, told: str
    ) -> None:
        program = Program(**{name: Fact(value, "/proc/7") for name, value in facts.items()})
        server = dataclasses.replace(server_of(), program=program)
        assert detected("malloc", host_of(), server) == Detected(state, f"reported only: {told}")


class TestGlibcTunables:
    def told(self, host: Host, **facts: Any) -> Detected:
        known = {"allocator": "glibc", "malloc_variables": {}, **facts}
        program = Program(**{name: Fact(value, "/proc/7") for name, value in known.items()})
        return detected("glibc_tunables", host, dataclasses.replace(server_of(), program=program))

    def test_it_says_what_to_try(self) -> None:
        assert self.told(host_of()) == Detected(
            State.OFF,
            "reported only: to try at the server's start: GLIBC_TUNABLES=glibc.malloc.hugetlb=1:"
            "glibc.pthread.rseq=0 (in a variant, prefixed with env.)",
        )

    def test_where_there_are_no_transparent_huge_pages_none_are_asked_for(self) -> None:
        host = host_of(kernel_files={"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"})
        assert "GLIBC_TUNABLES=glibc.pthread.rseq=0 (in" in self.told(host).detail

    def test_what_was_chosen_is_shown_and_others_libraries_have_no_tunables(self) -> None:
        chosen = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2"}
        assert self.told(host_of(), malloc_variables=chosen) == Detected(
            State.ON,
            "reported only: the server was started with GLIBC_TUNABLES=glibc.malloc.arena_max=2",
        )
        assert self.told(host_of(), allocator="musl") == Detected(
            State.OFF, "reported only: the server uses musl's malloc"
        )

    def test_what_it_says_to_try_is_what_a_variant_may_have(self) -> None:
        tried = "glibc.malloc.hugetlb=1:glibc.pthread.rseq=0"
        assert why_not_given("GLIBC_TUNABLES", tried) is None
        assert why_not_given("GLIBC_TUNABLES", "glibc.pthread.stack_cache_size=1") is not None
        options = "tcache_max:131072,dirty_decay_ms:-1,narenas:1"
        assert why_not_given("MALLOC_CONF", options) is None
