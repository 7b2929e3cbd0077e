"""Checks of the network: interrupts, buffers, dead connections."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pgdyno.base import numbers
from pgdyno.host.cpu_list import parse_cpu_list
from pgdyno.host.host import Nic
from pgdyno.plan.levers._contract import Check, Layer, Lever, Need, PlanContext, Risk, sysctl_path
from pgdyno.plan.levers.system._network import nics, nothing_to_gain

WAITS = {name: sysctl_path(f"net.core.{name}") for name in ("busy_read", "busy_poll")}
OFF = "0"

CARD = "/sys/class/net/*"
EMPTY_POLLS, WAITS_NS = "/napi_defer_hard_irqs", "/gro_flush_timeout"
SHOWN_POLLS, SHOWN_NS = 10, 20_000  # the example values of the kernel's commit
NS_PER_US = 1000

AFFINITIES = "/proc/irq/*/smp_affinity_list"
QUEUES_PER_CPU = 4  # arbitrary: the fewest CPUs that are not saturated are found by trying

SENT, RECEIVED = sysctl_path("net.ipv4.tcp_wmem"), sysctl_path("net.ipv4.tcp_rmem")
FAR_AWAY_MS = 100  # a round trip between continents

IDLE = sysctl_path("net.ipv4.tcp_keepalive_time")
INTERVAL = sysctl_path("net.ipv4.tcp_keepalive_intvl")
PROBES = sysctl_path("net.ipv4.tcp_keepalive_probes")
OWN = "tcp_keepalives_idle"
LONG_S = 600  # arbitrary: a lock held longer than this is noticed by users


def _over_a_network(found: Callable[[PlanContext], str]) -> Callable[[PlanContext], str]:
    """Return the check, preceded by a test whether any client uses the network."""
    return lambda ctx: nothing_to_gain(ctx) or found(ctx)


def _busy_poll(ctx: PlanContext) -> str:
    have = ", ".join(f"net.core.{name} = {ctx.value(path)}" for name, path in WAITS.items())
    clients = f"up to {ctx.settings.text('max_connections')} clients and {ctx.cpu_count:g} CPUs"
    if _is_polling(ctx):
        return f"on ({have}): with {clients}, it takes CPU time from busy backends"
    return f"left off ({have}): with {clients}, it would take CPU time from busy backends"


def _is_polling(ctx: PlanContext) -> bool:
    return any(ctx.value(path) not in (None, OFF) for path in WAITS.values())


def _interrupt_coalescing(ctx: PlanContext) -> str:
    return "; ".join(_coalescing(ctx, nic) for nic in nics(ctx))


def _coalescing(ctx: PlanContext, nic: Nic) -> str:
    own = f"ethtool -c {nic.name} shows the card's own coalescing"
    if _waits(ctx, nic):
        waits_us = _number(ctx, nic, WAITS_NS) / NS_PER_US
        return (
            f"{nic.name} re-enables interrupts after {_number(ctx, nic, EMPTY_POLLS)} empty polls, "
            f"{waits_us:g} µs apart; {own}"
        )
    directory = CARD.replace("*", nic.name)
    return (
        f"{nic.name} re-enables interrupts as soon as all packets are received; {own}. For less CPU time at "
        f"a higher latency, in a variant: {directory}{EMPTY_POLLS}={SHOWN_POLLS},"
        f"{directory}{WAITS_NS}={SHOWN_NS}. For low latency: ethtool -C {nic.name} adaptive-rx off"
    )


def _waits(ctx: PlanContext, nic: Nic) -> bool:
    """Whether the kernel defers interrupts: both values must be set."""
    return _number(ctx, nic, EMPTY_POLLS) > 0 and _number(ctx, nic, WAITS_NS) > 0


def _number(ctx: PlanContext, nic: Nic, name: str) -> int:
    return int(ctx.value(CARD.replace("*", nic.name) + name) or 0)


def _irq_affinity(ctx: PlanContext) -> str:
    return "; ".join(_interrupts(ctx, nic) for nic in nics(ctx))


def _interrupts(ctx: PlanContext, nic: Nic) -> str:
    queues, lists = nic.rx_queues.or_else(0), _lists(ctx, nic)
    if queues < 2:
        return f"{nic.name} has one queue: nothing to concentrate"
    if not lists:
        return f"the interrupts of {nic.name} are not known"
    places = dict.fromkeys(lists.values())
    have = f"{nic.name} has {queues} queues, with {len(lists)} interrupts on CPUs {', '.join(places)}"
    if _are_gathered(lists, queues):
        return f"{have}: already concentrated, on CPUs that must receive for all clients"
    first = AFFINITIES.replace("*", next(iter(lists)))
    owner = ctx.owner_of((AFFINITIES,))
    stopping = "" if owner is None else f"stop {owner.name}, which would reset them, and "
    return (
        f"{have}. To try fewer CPUs, {stopping}concentrate them in a variant: {_gathered(lists, queues)} "
        f"(each as {first}=CPU)"
    )


def _are_gathered(lists: Mapping[str, str], queues: int) -> bool:
    places = set(lists.values())
    return len(places) <= math.ceil(queues / QUEUES_PER_CPU) and all(map(str.isdecimal, places))


def _gathered(lists: Mapping[str, str], queues: int) -> str:
    """Return the interrupts for each CPU, neighbours together, on CPUs that are allowed for them now."""
    cpus = sorted({cpu for text in lists.values() for cpu in parse_cpu_list(text) or ()})
    chosen = cpus[: math.ceil(queues / QUEUES_PER_CPU)]
    share = math.ceil(len(lists) / len(chosen))
    groups = [list(lists)[at : at + share] for at in range(0, len(lists), share)]
    return "; ".join(f"{', '.join(group)} to {cpu}" for cpu, group in zip(chosen, groups, strict=False))


def _lists(ctx: PlanContext, nic: Nic) -> dict[str, str]:
    """Return the present CPU list of each of the card's interrupts."""
    paths = {number: AFFINITIES.replace("*", number) for number in nic.irq_affinity.or_else({})}
    return {number: cpus for number, path in paths.items() if (cpus := ctx.value(path)) is not None}


def _are_all_gathered(ctx: PlanContext) -> bool:
    found = [(nic, queues) for nic in nics(ctx) if (queues := nic.rx_queues.or_else(0)) > 1]
    return bool(found) and all(_are_gathered(_lists(ctx, nic), queues) for nic, queues in found)


def _tcp_buffers(ctx: PlanContext) -> str:
    sent_bytes, received_bytes = _largest_bytes(ctx, SENT), _largest_bytes(ctx, RECEIVED)
    rate = numbers.size(sent_bytes * 1000 // FAR_AWAY_MS)
    return (
        f"buffers grow automatically, to {numbers.size(sent_bytes)} for sending and "
        f"{numbers.size(received_bytes)} for receiving: with a round trip of {FAR_AWAY_MS} ms, a client gets "
        f"up to {rate} per second. Only if that is too little, raise the third value of net.ipv4.tcp_wmem "
        "here, and of tcp_rmem on the client"
    )


def _largest_bytes(ctx: PlanContext, path: str) -> int:
    """Return the last of a file's three values: minimum, default, maximum."""
    figures = (ctx.value(path) or "").split()
    return int(figures[-1]) if figures else 0


def _tcp_keepalive(ctx: PlanContext) -> str:
    if _is_servers_own(ctx):
        return f"the server overrides the kernel's times: {OWN} = {ctx.settings.text(OWN)} s"
    noticed_s = _noticed_s(ctx)
    fact = f"a dead client connection is detected after {noticed_s // 60} minutes"
    if noticed_s <= LONG_S:
        return fact
    return (
        f"{fact}, and keeps its locks until then; {OWN} = 60, tcp_keepalives_interval = 10 and "
        "tcp_keepalives_count = 6 reduce this to 2 minutes, for this server only"
    )


def _noticed_s(ctx: PlanContext) -> int:
    idle, interval, probes = (int(ctx.value(path) or 0) for path in (IDLE, INTERVAL, PROBES))
    return idle + interval * probes


def _is_servers_own(ctx: PlanContext) -> bool:
    return ctx.settings.has(OWN) and ctx.settings.guc(OWN).source != "default"


CHECKS = (
    Check(
        Lever(
            name="busy_poll",
            title="busy polling for packets",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            reads=tuple(WAITS.values()),
            needs=(Need.CPUS,),
            order_after={"max_connections": "more clients than CPUs cannot all poll"},
            touches_wakeups=True,
        ),
        _over_a_network(_busy_poll),
        _is_polling,
        "off, unless CPUs are idle and microseconds per round trip matter: every waiting backend keeps a CPU "
        "busy, and the values apply to the whole machine. Not yet measured by pgdyno.",
        (
            "https://docs.kernel.org/admin-guide/sysctl/net.html",
            "https://docs.kernel.org/networking/napi.html",
        ),
    ),
    Check(
        Lever(
            name="interrupt_coalescing",
            title="fewer interrupts per packet",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            reads=(CARD + EMPTY_POLLS, CARD + WAITS_NS),
            is_instant=True,
        ),
        _over_a_network(_interrupt_coalescing),
        lambda ctx: any(_waits(ctx, nic) for nic in nics(ctx)),
        "fewer interrupts if many clients keep all CPUs busy; low latency if few clients wait for each "
        "response, which interrupt coalescing delays. The kernel developer of the two files observed a loss "
        "of 20 % of throughput to interrupts with 32 or more queues at 100 Gbit/s. Not yet measured by "
        "pgdyno.",
        (
            "https://docs.kernel.org/networking/napi.html",
            "https://git.kernel.org/torvalds/c/6f8b12d661d0",
            "https://github.com/aws/aws-graviton-getting-started/tree/main/perfrunbook",
            "https://man7.org/linux/man-pages/man8/ethtool.8.html",
        ),
    ),
    Check(
        Lever(
            name="irq_affinity",
            title="interrupts of a network card on few CPUs",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            reads=(AFFINITIES,),
        ),
        _over_a_network(_irq_affinity),
        _are_all_gathered,
        "interrupts on the fewest CPUs that they do not saturate (mpstat -P ALL: softirq), so that backends "
        "on the others are not interrupted while they hold a lock. irqbalance rewrites the lists every ten "
        "seconds. Not yet measured by pgdyno.",
        (
            "https://docs.kernel.org/networking/scaling.html#rss-receive-side-scaling",
            "https://docs.kernel.org/core-api/irq/irq-affinity.html",
            "https://github.com/aws/aws-graviton-getting-started/tree/main/perfrunbook",
        ),
    ),
    Check(
        Lever(
            name="tcp_buffers",
            title="TCP buffers for distant clients",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            reads=(SENT, RECEIVED),
        ),
        _over_a_network(_tcp_buffers),
        lambda _: False,  # the kernel sizes buffers automatically on every host
        "a maximum of bandwidth times round-trip time, for large results, COPY and distant standbys. Short "
        "results gain nothing; larger buffers take memory for each connection.",
        (
            "https://man7.org/linux/man-pages/man7/tcp.7.html",
            "https://docs.kernel.org/networking/ip-sysctl.html",
        ),
    ),
    Check(
        Lever(
            name="tcp_keepalive",
            title="detection of dead client connections",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            reads=(IDLE, INTERVAL, PROBES),
        ),
        _over_a_network(_tcp_keepalive),
        lambda ctx: _is_servers_own(ctx) or _noticed_s(ctx) <= LONG_S,
        "ten minutes or less, so that the locks, the snapshot and the connection of a vanished client are "
        "released. Short times close connections during temporary network failures. No gain in throughput.",
        (
            (
                "https://www.postgresql.org/docs/current/runtime-config-connection.html"
                "#GUC-TCP-KEEPALIVES-IDLE"
            ),
            "https://man7.org/linux/man-pages/man7/tcp.7.html",
        ),
    ),
)
