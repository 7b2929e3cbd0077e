"""All differences of two experiments besides the machines, heaviest first. Pure.

Unknown is a value: what is not known on one side, or on both, is told as such and never taken for equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.measure.records.recorded_facts import sysctls
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.machine_comparison import Difference, Weight
from pgdyno.results.machines.difference_catalogue import ENTRIES, NAMED_SYSCTLS, Entry
from pgdyno.results.machines.setting_differences import setting_differences, variant_differences

_MOST_NAMED = 8


def differences(a: Experiment, b: Experiment, variants: Sequence[str]) -> tuple[Difference, ...]:
    """Return everything not known to be the same on both sides, except the machines.

    ``variants`` are those that are compared.
    """
    found = [
        *(one for entry in ENTRIES if entry.concerns(a, b) for one in _of(entry, a, b)),
        *_other_builds(a, b, variants),
        *setting_differences(a, b),
        *(one for variant in variants for one in variant_differences(a, b, variant)),
        *_other_sysctls(a, b),
    ]
    return tuple(sorted(found, key=lambda one: one.weight.rank))


def _of(entry: Entry, a: Experiment, b: Experiment) -> Iterator[Difference]:
    of_a, of_b = entry.told(a), entry.told(b)
    if of_a is not None and of_a == of_b:
        return
    weight = entry.weigh(of_a, of_b)
    if entry.between is not None and of_a is not None and of_b is not None:
        of_a, of_b = _only(of_a, of_b, entry.between), _only(of_b, of_a, entry.between)
    if of_a != of_b or of_a is None:
        yield Difference(entry.subject, of_a, of_b, weight, entry.reason, entry.source)


def _only(mine: str, other: str, between: str) -> str:
    """Return the items that the other one does not have."""
    others = other.split(between)
    return between.join(one for one in mine.split(between) if one not in others) or "without"


def _other_builds(a: Experiment, b: Experiment, variants: Sequence[str]) -> Iterator[Difference]:
    """Yield variants that ran on another server than the baseline, of whose build nothing is recorded."""
    for name in variants:
        servers = [
            {one.name: one.server for one in experiment.variants}[name]
            == {one.name: one.server for one in experiment.variants}.get(experiment.baseline)
            for experiment in (a, b)
        ]
        if not all(servers):
            subject = f"build of the server of {name}"
            reason = "recorded is the baseline's alone, which is another one"
            yield Difference(subject, None, None, Weight.TENS, reason, "see compiler's flags")


def _other_sysctls(a: Experiment, b: Experiment) -> Iterator[Difference]:
    """Yield settings of the kernel without an entry of their own: in one line, for they matter little."""
    of_a, of_b = sysctls(a), sysctls(b)
    names = [name for name in of_a if name not in NAMED_SYSCTLS and of_a[name] != of_b.get(name, of_a[name])]
    if names:
        shown = names[:_MOST_NAMED]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        yield Difference(
            f"{', '.join(shown)}{more}",
            ", ".join(of_a[name] for name in shown),
            ", ".join(of_b[name] for name in shown),
            Weight.LITTLE,
            "several follow from the memory's size; none is known to matter to a server on a socket",
            "pgdyno's estimate",
        )
