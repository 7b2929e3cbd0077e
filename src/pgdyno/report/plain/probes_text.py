"""Costs of single operations on a machine, as text. Pure."""

from __future__ import annotations

from pgdyno.model.facts import Fact, Unknown
from pgdyno.model.hosts.probes import Probes

_WIDTH = 36


def probes_text(probes: Probes) -> str:
    """Return a line for each probe, with its result."""
    lines = (
        _line("wake-up on an idle CPU", probes.wake_up.idle_us, "{:.1f} µs"),
        _line("wake-up on a CPU kept busy", probes.wake_up.busy_us, "{:.1f} µs"),
        _line("system call", probes.system_call_ns, "{:,.0f} ns"),
        _line("page fault", probes.page_fault_ns, "{:,.0f} ns"),
        _line("write and fsync of 8 kB", probes.fsync_8kb_us, "{:,.0f} µs"),
        _line("CPU time stolen meanwhile", probes.stolen_share, "{:.1%}"),
    )
    return "\n".join(("Probes of this machine", *lines)) + "\n"


def _line(title: str, fact: Fact[float], form: str) -> str:
    value = f"unknown: {fact.value.reason}" if isinstance(fact.value, Unknown) else form.format(fact.value)
    return f"  {title:<{_WIDTH}}{value}  ({fact.source})"
