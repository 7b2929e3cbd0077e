"""interrupt_coalescing: how many packets one interrupt announces; reported only.

What it does:
    Reports whether the kernel waits after the last packet before it lets a card interrupt again
    (napi_defer_hard_irqs and gro_flush_timeout), and says how the card's own waiting is seen and changed. It
    changes nothing: it trades latency for CPU time, and which of them is short no fact of the host tells.

Why it helps:
    Fewer interrupts leave more CPU time to backends, where many clients keep all CPUs busy.

When it hurts:
    Packets wait. A client that sends its next statement after the last answer gets every answer later, by as
    much as is waited for: few clients are slower, and CPUs idle.

How it is verified:
    /proc/interrupts counts the interrupts; ethtool -c shows what the card waits for.

How it is undone:
    There is nothing to undo. By hand: the values found are written back.

Evidence:
    The kernel's author of the two files saw 20 % of throughput lost to interrupts with 32 queues and more at
    100 Gbit/s, and shows 20000 ns and 10 as a usage. Amazon's guide for Graviton turns the card's adaptive
    waiting off where latency counts. No figure of our own yet.

References:
    https://docs.kernel.org/networking/napi.html
    https://git.kernel.org/torvalds/c/6f8b12d661d0
    https://github.com/aws/aws-graviton-getting-started/tree/main/perfrunbook
    https://man7.org/linux/man-pages/man8/ethtool.8.html
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
from pgdyno.levers.system._network import nics, nothing_to_gain
from pgdyno.model.hosts.host import Nic

CARD = "/sys/class/net/*"
EMPTY_POLLS, WAITS_NS = "/napi_defer_hard_irqs", "/gro_flush_timeout"
SHOWN_POLLS, SHOWN_NS = 10, 20_000  # as the kernel's commit shows them
NS_PER_US = 1000

LEVER = Lever(
    name="interrupt_coalescing",
    title="packets announced together",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    reads=(CARD + EMPTY_POLLS, CARD + WAITS_NS),
    is_instant=True,
)


def plan(ctx: PlanContext) -> Skipped:
    """Report each card's coalescing, and how to try more or less."""
    if obstacle := nothing_to_gain(ctx):
        return Skipped(LEVER.name, obstacle)
    return Skipped(LEVER.name, "; ".join(_report(ctx, nic) for nic in nics(ctx)))


def _report(ctx: PlanContext, nic: Nic) -> str:
    own = f"ethtool -c {nic.name} shows what the card itself waits for"
    if _waits(ctx, nic):
        waits_us = _number(ctx, nic, WAITS_NS) / NS_PER_US
        return (
            f"{nic.name} interrupts again after {_number(ctx, nic, EMPTY_POLLS)} looks without a packet, "
            f"{waits_us:g} µs apart; {own}"
        )
    directory = CARD.replace("*", nic.name)
    return (
        f"{nic.name} interrupts as soon as all packets are taken in; {own}. For less CPU time and longer "
        f"answers, in a variant: {directory}{EMPTY_POLLS}={SHOWN_POLLS},{directory}{WAITS_NS}={SHOWN_NS}. "
        f"For short answers: ethtool -C {nic.name} adaptive-rx off"
    )


def _waits(ctx: PlanContext, nic: Nic) -> bool:
    """Whether the kernel waits: it takes both."""
    return _number(ctx, nic, EMPTY_POLLS) > 0 and _number(ctx, nic, WAITS_NS) > 0


def _number(ctx: PlanContext, nic: Nic, name: str) -> int:
    return int(ctx.value(CARD.replace("*", nic.name) + name) or 0)


def _is_in_use(ctx: PlanContext) -> bool:
    return any(_waits(ctx, nic) for nic in nics(ctx))


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
