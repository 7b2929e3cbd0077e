"""Checks of the kernel's allocation of CPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.host.cpu_list import format_cpu_list
from pgdyno.plan.levers._contract import Check, Layer, Lever, PlanContext, Risk

ALLOWED, ONLINE = "host.limits.cpuset", "host.cpu.logical_count"
FEWEST_CPUS = 4  # arbitrary: with fewer, one CPU is too large a share to give away
SHARE_OF_OTHERS = 4  # divisor: a quarter of the CPUs; arbitrary, as the needs of local clients differ

MODELS = "/sys/kernel/debug/sched/preempt"
RUNS_ON = ("none", "voluntary")
_CHOSEN = re.compile(r"\((\w+)\)")


def _cpu_pinning(ctx: PlanContext) -> str:
    allowed: Sequence[int] = ctx.known(ALLOWED)
    if _is_confined(ctx):
        limit = ctx.fact(ALLOWED).source
        return f"reported only: the server may use {len(allowed)} of {ctx.known(ONLINE)} CPUs ({limit})"
    return f"reported only: the server may use all {len(allowed)} CPUs{_advice(allowed)}"


def _advice(cpus: Sequence[int]) -> str:
    """Return how to leave a quarter of the CPUs to others; empty if there are too few."""
    if len(cpus) < FEWEST_CPUS:
        return ""
    count = len(cpus) // SHARE_OF_OTHERS
    others, own = format_cpu_list(cpus[:count]), format_cpu_list(cpus[count:])
    return (
        f"; to leave {others} to others: systemctl set-property UNIT AllowedCPUs={own}, and run local "
        f"clients with taskset -c {others}; for a single process: taskset -cp CPU PID (pg_stat_activity "
        "shows the walwriter's)"
    )


def _is_confined(ctx: PlanContext) -> bool:
    return len(ctx.known(ALLOWED)) < int(ctx.known(ONLINE))


def _preemption_model(ctx: PlanContext) -> str:
    model = _model(ctx)
    if model is None:
        return f"unrecognized content of {MODELS}: {ctx.value(MODELS)}"
    if _runs_on(ctx):
        return f"the model is {model}: in the kernel a process runs until it yields"
    others = [name for name in RUNS_ON if name in (ctx.value(MODELS) or "").split()]
    instead = f"; or write {others[0]} to {MODELS}" if others else ""
    return (
        f"the model is {model}: a backend may be preempted during a page fault while others wait for its "
        f"lock, as observed with a thousand clients on 96 CPUs. Huge pages avoid these faults{instead}"
    )


def _model(ctx: PlanContext) -> str | None:
    """Return the active model, in parentheses in this file: ``none voluntary (full)``."""
    chosen = _CHOSEN.search(ctx.value(MODELS) or "")
    return None if chosen is None else chosen[1]


def _runs_on(ctx: PlanContext) -> bool:
    return _model(ctx) in RUNS_ON


CHECKS = (
    Check(
        Lever(
            name="cpu_pinning",
            title="a server confined to some CPUs",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            facts=(ALLOWED, ONLINE),
        ),
        _cpu_pinning,
        _is_confined,
        "dedicated CPUs on a machine that the server shares, or that has several NUMA nodes: the server is "
        "disturbed less, and its memory stays local. It cannot use other idle CPUs then. systemctl revert "
        "UNIT undoes set-property. A single confined process, such as the walwriter, waits when its CPU is "
        "busy, and its successor after a crash is not confined. Not yet measured by pgdyno.",
        (
            (
                "https://www.freedesktop.org/software/systemd/man/latest/systemd.resource-control.html"
                "#AllowedCPUs="
            ),
            "https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#CPUAffinity=",
            "https://man7.org/linux/man-pages/man1/taskset.1.html",
            "https://docs.kernel.org/admin-guide/cgroup-v2.html#cpuset",
        ),
    ),
    Check(
        Lever(
            name="preemption_model",
            title="the kernel's preemption model",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            reads=(MODELS,),
            order_after={"huge_page_pool": "with huge pages the model has little effect"},
        ),
        _preemption_model,
        _runs_on,
        "none or voluntary, or huge pages: if a backend holding a spinlock is preempted during a page fault, "
        "all others spin. Published for 96 CPUs and 1024 clients: 98 600 transactions per second with none, "
        "50 800 with lazy, and no loss with huge pages. With none, other programs wait longer for a CPU; "
        "kernels from 7.0 on no longer offer it on all machines.",
        (
            "https://thebuild.com/blog/2026/04/23/preempt_none-is-dead-your-postgres-probably-doesnt-care/",
            "https://docs.kernel.org/scheduler/sched-debug.html",
        ),
    ),
)
