"""transparent_huge_pages: huge pages for those who ask, and no waiting for them.

What it does:
    Sets the policy to madvise where it is always, and the effort at a page fault (defrag) to madvise where it
    is always. A policy of never or madvise stays.

Why it helps:
    With always, every allocation of a backend may take a huge page: 2 MB are cleared where a few kB were
    wanted, and with defrag the backend itself compacts memory first, which stalls it. Shared memory does not
    profit: it takes huge pages from the pool (see huge_page_pool) or by shmem_enabled.

When it hurts:
    Sorts and hash tables of many MB gain from always.

How it is verified:
    The kernel's choice, read anew.

How it is undone:
    The choice found is written back.

Evidence:
    TuneD's postgresql profile turns transparent huge pages off, providers' guides differ; no figure of our
    own yet.

References:
    https://docs.kernel.org/admin-guide/mm/transhuge.html
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    choices_in,
    detect_files,
    lines_or_skipped,
    propose_file,
)

POLICY = "/sys/kernel/mm/transparent_hugepage/enabled"
EFFORT = "/sys/kernel/mm/transparent_hugepage/defrag"
FOR_ALL, FOR_WHO_ASKS = "always", "madvise"

LEVER = Lever(
    name="transparent_huge_pages",
    title="transparent huge pages for those who ask",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(POLICY, EFFORT),
    is_instant=True,
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose madvise where the kernel does it for everybody."""
    reasons = {
        POLICY: "every allocation may take and clear a huge page",
        EFFORT: "a backend that takes one compacts memory itself first",
    }
    lines = [
        propose_file(
            ctx,
            LEVER,
            path,
            FOR_WHO_ASKS,
            reason=f"with {FOR_ALL}, {reason}",
            evidence="Linux, mm/transhuge.rst; TuneD's profile postgresql turns them off",
        )
        for path, reason in reasons.items()
        if ctx.value(path) == FOR_ALL and FOR_WHO_ASKS in choices_in(ctx.file(path).or_else(""))
    ]
    found = f"the policy is {ctx.value(POLICY)}, the effort {ctx.value(EFFORT)}"
    return lines_or_skipped(LEVER, lines, found)


detect = detect_files(LEVER, plan)
