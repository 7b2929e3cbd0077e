"""transparent_huge_pages: only on request (madvise), and without stalls for compaction.

What it does:
    Sets the policy to madvise if it is always, and defrag, the effort at a page fault, to madvise if it is
    always. A policy of never or madvise is unchanged.

Why it helps:
    With always, every allocation of a backend may take a huge page: 2 MB are cleared where a few kB are
    needed, and with defrag the backend itself compacts memory first, which stalls it. Shared memory does not
    benefit: its huge pages come from the pool (see huge_page_pool) or from shmem_enabled.

When it hurts:
    Sorts and hash tables of many MB gain from always.

How it is verified:
    The value is read back from the kernel.

How it is undone:
    The value found is written back.

Evidence:
    TuneD's postgresql profile turns transparent huge pages off; providers' guides differ. Not yet measured by
    pgdyno.

References:
    https://docs.kernel.org/admin-guide/mm/transhuge.html
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk, choices_in

POLICY = "/sys/kernel/mm/transparent_hugepage/enabled"
EFFORT = "/sys/kernel/mm/transparent_hugepage/defrag"
FOR_ALL, ON_REQUEST = "always", "madvise"

LEVER = Lever(
    name="transparent_huge_pages",
    title="transparent huge pages only on request",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(POLICY, EFFORT),
    is_instant=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Propose madvise where the kernel's value is always."""
    reasons = {
        POLICY: "every allocation may take and clear a huge page",
        EFFORT: "a backend that takes a huge page first compacts memory itself",
    }
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            ON_REQUEST,
            reason=f"with {FOR_ALL}, {reason}",
            evidence="Linux, mm/transhuge.rst; TuneD's profile postgresql turns them off",
        )
        for path, reason in reasons.items()
        if ctx.value(path) == FOR_ALL and ON_REQUEST in choices_in(ctx.file(path).or_else(""))
    ]
    found = f"the policy is {ctx.value(POLICY)}, the effort {ctx.value(EFFORT)}"
    return LEVER.planned(lines, found)
