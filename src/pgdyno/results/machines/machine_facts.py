"""Facts about two machines, and their consequences for a comparison. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgdyno.measure.records.recorded_facts import (
    FactReader,
    frequency_source,
    gigahertz,
    member,
    of_disks,
    of_host,
    server_cpus,
    size,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.machine_comparison import MachineFact


def _disk(disk: Mapping[str, Any]) -> str:
    parts = (
        member("name")(disk),
        member("size_bytes", size)(disk),
        member("is_rotational", lambda value: "rotating" if value else "solid state")(disk),
    )
    return ", ".join(text for text in parts if text is not None)


MACHINE: tuple[tuple[str, FactReader], ...] = (
    ("processor", of_host("cpu.model")),
    ("architecture", of_host("cpu.architecture")),
    ("CPUs", of_host("cpu.logical_count")),
    ("cores", of_host("cpu.core_count")),
    ("SMT", of_host("cpu.is_smt_active", lambda value: "on" if value else "off")),
    ("CPUs for the server", server_cpus),
    ("sockets", of_host("cpu.socket_count")),
    ("NUMA nodes", of_host("cpu.numa_nodes")),
    ("frequency", of_host("cpu.frequency_mhz", gigahertz)),
    ("L1 data cache", of_host("cpu.l1d_bytes", size)),
    ("L2 cache", of_host("cpu.l2_bytes", size)),
    ("L3 cache", of_host("cpu.l3_bytes", size)),
    ("memory", of_host("memory.total_bytes", size)),
    ("virtualisation", of_host("cpu.virtualisation")),
    ("disks", of_disks(_disk)),
)
"""The facts about a machine, in order of display."""

INSTANCE = ("CPUs", "cores", "SMT")
"""If these differ, the comparison is one of instances, not of architectures."""


def machine_facts(a: Experiment, b: Experiment) -> tuple[MachineFact, ...]:
    """Return the facts about the machines, equal or not, without those unknown on both."""
    facts = [MachineFact(subject, read(a), read(b)) for subject, read in MACHINE]
    return tuple(fact for fact in facts if fact.a is not None or fact.b is not None)


def instance_warning(facts: Sequence[MachineFact]) -> str | None:
    """Return a warning that instances are compared, not architectures; None if their CPU counts are equal."""
    counts = [fact for fact in facts if fact.subject in INSTANCE]
    unequal = [
        f"{fact.subject} {fact.a or 'unknown'} and {fact.b or 'unknown'}"
        for fact in counts
        if not fact.is_equal
    ]
    missing = [subject for subject in INSTANCE if subject not in {fact.subject for fact in counts}]
    reasons = [*unequal, *(f"{subject} unknown" for subject in missing)]
    return f"this compares instances, not architectures: {'; '.join(reasons)}" if reasons else None


def frequency_warning(a: Experiment, b: Experiment) -> str | None:
    """Return a warning if the frequencies come from different sources, else None."""
    of_a, of_b = frequency_source(a), frequency_source(b)
    if of_a == of_b:
        return None
    return f"the frequencies are not comparable: A's is from {of_a}, B's from {of_b}"
