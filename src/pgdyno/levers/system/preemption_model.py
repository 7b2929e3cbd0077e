"""preemption_model: when the kernel may take a CPU away from a process.

What it does:
    Reports the model in use and those that this kernel can switch to. It changes nothing.

Why it helps:
    With none and voluntary a process that is inside the kernel goes on until it is done or waits; with full
    and lazy it may be interrupted there. A backend that is interrupted during a page fault while it holds a
    spinlock lets all others spin.

When it hurts:
    With none, other programs wait longer for a CPU. Kernels from 7.0 on no longer have it on all machines.

How it is verified:
    The choice in parentheses in the kernel's file.

How it is undone:
    There is nothing to undo. By hand: the model found is written back.

Evidence:
    Published for 96 CPUs and 1024 clients: 98 600 transactions per second with none, 50 800 with lazy, and no
    loss once the shared memory had huge pages. On few CPUs, and with huge pages, nothing is expected.

References:
    https://thebuild.com/blog/2026/04/23/preempt_none-is-dead-your-postgres-probably-doesnt-care/
    https://docs.kernel.org/scheduler/sched-debug.html
"""

from __future__ import annotations

import re

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    verify_files,
)

MODELS = "/sys/kernel/debug/sched/preempt"
RUNS_ON = ("none", "voluntary")
_CHOSEN = re.compile(r"\((\w+)\)")

LEVER = Lever(
    name="preemption_model",
    title="when the kernel preempts a process",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    reads=(MODELS,),
    order_after={"huge_page_pool": "with huge pages the model matters little"},
)


def plan(ctx: PlanContext) -> Skipped:
    """Report the model, and the remedies if backends are preempted while holding locks."""
    model = _model(ctx)
    if model is None:
        return Skipped(LEVER.name, f"{MODELS} says nothing that is known here: {ctx.value(MODELS)}")
    if _is_in_use(ctx):
        return Skipped(LEVER.name, f"the model is {model}: in the kernel a process goes on until it yields")
    others = [name for name in RUNS_ON if name in (ctx.value(MODELS) or "").split()]
    instead = f"; or write {others[0]} into {MODELS}" if others else ""
    return Skipped(
        LEVER.name,
        f"the model is {model}: a backend may be interrupted during a page fault while others wait for its "
        f"lock, as was seen with a thousand clients on 96 CPUs. Huge pages take the faults away{instead}",
    )


def _model(ctx: PlanContext) -> str | None:
    """Return the choice, which this file has in parentheses: ``none voluntary (full)``."""
    chosen = _CHOSEN.search(ctx.value(MODELS) or "")
    return None if chosen is None else chosen[1]


def _is_in_use(ctx: PlanContext) -> bool:
    return _model(ctx) in RUNS_ON


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
