"""Costs of single operations on a machine, as text. Pure."""

from __future__ import annotations

from collections.abc import Callable

from pgdyno.base import numbers
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.probes import Probes

_WIDTH = 36


def probes_text(probes: Probes) -> str:
    """Return a line for each probe, with its result."""
    lines = (
        _line("wake-up on an idle CPU", probes.wake_up.idle_us, "{:.1f} µs".format),
        _line("wake-up on a CPU kept busy", probes.wake_up.busy_us, "{:.1f} µs".format),
        _line("system call", probes.system_call_ns, "{:,.0f} ns".format),
        _line("page fault", probes.page_fault_ns, "{:,.0f} ns".format),
        _line("write and fsync of 8 kB", probes.fsync_8kb_us, "{:,.0f} µs".format),
        _line("CPU time stolen meanwhile", probes.stolen_share, lambda part: numbers.share(part, 1)),
    )
    return "\n".join(("Probes of this machine", *lines)) + "\n"


def _line(title: str, fact: Fact[float], form: Callable[[float], str]) -> str:
    value = f"unknown: {fact.value.reason}" if isinstance(fact.value, Unknown) else form(fact.value)
    return f"  {title:<{_WIDTH}}{value}  ({fact.source})"
