"""tcp_buffers: how much of an answer may be on its way.

What it does:
    Reports how far the kernel grows the buffers of a connection by itself. It changes nothing: how far away
    the clients are, no fact of the host tells.

Why it helps:
    What is under way in one round trip is limited by the buffer. Large results, COPY and standbys on another
    continent may be slower than the line.

When it hurts:
    Larger buffers take memory per connection, and hide from the server that a client does not keep up.

How it is verified:
    ss -ti shows the buffers and round-trip times of the connections.

How it is undone:
    There is nothing to undo. By hand: the values found are written back.

Evidence:
    Arithmetic: the buffer divided by the time of a round trip. Short answers gain nothing.

References:
    https://man7.org/linux/man-pages/man7/tcp.7.html
    https://docs.kernel.org/networking/ip-sysctl.html
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
    sysctl_path,
    verify_files,
)
from pgdyno.levers.system._network import nothing_to_gain
from pgdyno.model import numbers

SENT, RECEIVED = sysctl_path("net.ipv4.tcp_wmem"), sysctl_path("net.ipv4.tcp_rmem")
FAR_AWAY_MS = 100  # a round trip between continents

LEVER = Lever(
    name="tcp_buffers",
    title="answers on their way to clients far away",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    reads=(SENT, RECEIVED),
)


def plan(ctx: PlanContext) -> Skipped:
    """Say which rate the buffers allow to clients that are far away."""
    if obstacle := nothing_to_gain(ctx):
        return Skipped(LEVER.name, obstacle)
    sent_bytes, received_bytes = _largest_bytes(ctx, SENT), _largest_bytes(ctx, RECEIVED)
    rate = numbers.size(sent_bytes * 1000 // FAR_AWAY_MS)
    return Skipped(
        LEVER.name,
        f"buffers grow by themselves, to {numbers.size(sent_bytes)} for sending and "
        f"{numbers.size(received_bytes)} for receiving: a client {FAR_AWAY_MS} ms away gets up to {rate} "
        "per second. Only if that is too little, raise the third figure of net.ipv4.tcp_wmem here, and of "
        "tcp_rmem on the client's side",
    )


def _largest_bytes(ctx: PlanContext, path: str) -> int:
    """Return the last of a file's three figures: least, first, largest."""
    figures = (ctx.value(path) or "").split()
    return int(figures[-1]) if figures else 0


def _is_in_use(_ctx: PlanContext) -> bool:
    return False  # the kernel grows buffers everywhere, and to what size is its own choice


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
