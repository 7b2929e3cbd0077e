"""lse_atomics: whether an Arm server changes shared memory with single instructions; reported only.

What it does:
    Looks into the server's program for the instructions that Armv8.1 has for atomic operations (LSE): in its
    own code, in helpers that ask each time whether the processor has them, or nowhere.

Why it helps:
    Without them every lock and every pin of a buffer is a loop that starts over when another CPU interferes:
    the more CPUs contend, the longer it takes.

When it hurts:
    A program that has them in its own code does not run on Armv8.0 (Cortex-A72, Graviton1).

How it is verified:
    By the instructions in the file that the postmaster runs.

How it is undone:
    Nothing is changed: it takes another build of the server.

Evidence:
    A. Korotkov (2021): a dramatic effect on 64 cores of Graviton2, none on M1, slightly worse on Kunpeng 920.
    No figure of our own yet; the helpers' question costs little, AWS advises to compile it away.

References:
    https://akorotkov.github.io/blog/2021/04/30/arm/
    https://github.com/aws/aws-graviton-getting-started
    https://gcc.gnu.org/onlinedocs/gcc/AArch64-Options.html
"""

from __future__ import annotations

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
from pgdyno.model.servers.server import Atomics

ATOMICS, FEATURES = "server.program.atomics", "host.cpu.isa_features"
LSE = "atomics"  # the kernel's word for it
INLINE_BY = "compiled with -march=armv8.2-a"

LEVER = Lever(
    name="lse_atomics",
    title="atomic operations in one instruction",
    layer=Layer.HARDWARE,
    risk=Risk.RESTART,
    maturity=Maturity.PREVIEW,
    facts=(ATOMICS, FEATURES),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report; it takes another build."""
    counted: Atomics = ctx.known(ATOMICS)
    if counted.inline > counted.outline:
        found = f"the server's own code has {counted.inline} of the instructions"
    elif counted.outline:
        found = (
            f"they are in {counted.outline} helpers, which ask each time whether the processor has them; "
            f"{INLINE_BY} they would be in the server's own code"
        )
    elif LSE in ctx.known(FEATURES):
        found = f"the processor has them, and the server does not use them; {INLINE_BY} it would"
    else:
        found = "neither the processor nor the server has them"
    return Skipped(LEVER.name, f"reported only: {found}")


def _is_in_use(ctx: PlanContext) -> bool:
    counted: Atomics = ctx.known(ATOMICS)
    return counted.inline + counted.outline > 0


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
