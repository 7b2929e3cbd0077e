"""Checks that two experiments did the same work. Pure.

Only then are differences in their results due to the machines.

Two workloads are the same if everything that defines their work is equal: data, transactions, load generator,
clients, treatment of the data between rounds. What they ran *on* may differ: see ``differences``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.host.kernel_file import display_name
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.machine_comparison import A, B, Difference, Weight
from pgdyno.model.experiments.workload import USER_SCRIPTS
from pgdyno.model.variants.variant import Variant

_NO_SOURCE = "arithmetic: a different amount of work"
_UNSET = "unchanged"
_NO_OTHER_WORK = frozenset({"budget", "accept", "workload", "clients"})
"""Options that change no workload: time to measure, accepted builds, set of cells.
The definition of a cell and its number of clients are compared separately."""
_MOST_LISTED = 6


@dataclass(frozen=True)
class Common:
    """The common part of two experiments.

    ``unknown`` lists work-defining properties that are not recorded on both sides.
    """

    workloads: tuple[str, ...]
    variants: tuple[str, ...]
    left_out: tuple[str, ...]
    unknown: tuple[Difference, ...]


def common_part(a: Experiment, b: Experiment) -> Common:
    """Return the workloads and variants that both have.

    Raises: UsageError if there are none, or if workloads of the same name differ.
    """
    _require_two_with_rounds(a, b)
    workloads = tuple(name for name in a.workloads if name in b.workloads)
    if not workloads:
        raise UsageError(
            "A and B have no workload in common",
            detail=f"A ran {_listed(a.workloads)}; B ran {_listed(b.workloads)}",
            hint="run the same command with the same options on both machines",
        )
    conflicts = [*_options(a, b), *(one for workload in workloads for one in _definitions(workload, a, b))]
    if differing := [one for one in conflicts if one.is_known]:
        raise UsageError(
            "A and B did not run the same workload",
            detail="; ".join(_in_words(differing)),
            hint="run the same command with the same options on both machines",
        )
    variants, others = _variants(a, b)
    return Common(
        workloads,
        variants,
        left_out=(*_only_in_one(a, b), *others),
        unknown=tuple(one for one in conflicts if not one.is_known),
    )


def _require_two_with_rounds(a: Experiment, b: Experiment) -> None:
    if a.id == b.id:
        raise UsageError(
            f"A and B are the same experiment: {a.id}",
            hint="name two files, or the ids of two experiments: see pgdyno report --list",
        )
    for side, experiment in ((A, a), (B, b)):
        if experiment.parts:
            raise UsageError(
                f"{side} combines several experiments and has no rounds of its own",
                hint=f"compare one of them: {', '.join(part.experiment for part in experiment.parts)}",
            )
        if not experiment.blocks:
            raise UsageError(f"{side} has no results: {experiment.id} did not complete its first round")


def _options(a: Experiment, b: Experiment) -> Iterator[Difference]:
    """Yield the differing options; they define all workloads."""
    for name in sorted({*a.options, *b.options} - _NO_OTHER_WORK):
        if a.options.get(name) != b.options.get(name):
            of_a, of_b = (_option(one.options.get(name)) for one in (a, b))
            yield Difference(f"--{name}", of_a, of_b, Weight.DECIDES, "it changes the workload", _NO_SOURCE)


def _option(value: str | None) -> str:
    return "not given" if value is None else value or "given"


def _definitions(workload: str, a: Experiment, b: Experiment) -> Iterator[Difference]:
    """Yield the known and possible differences in a workload's definition."""
    for (subject, of_a), (_, of_b) in zip(_definition(workload, a), _definition(workload, b), strict=True):
        if of_a is None or of_b is None or of_a != of_b:
            yield Difference(
                f"{workload}: {subject}", of_a, of_b, Weight.DECIDES, "it changes the workload", _NO_SOURCE
            )
    if workload == USER_SCRIPTS:
        subject = f"{workload}: the scripts' text"
        yield Difference(subject, None, None, Weight.DECIDES, "it is not recorded", _NO_SOURCE)


def work_of(workload: str, experiment: Experiment) -> dict[str, str | None]:
    """Return everything that defines the work of a workload, by subject; None: not recorded."""
    options = {
        f"--{name}": _option(value)
        for name, value in sorted(experiment.options.items())
        if name not in _NO_OTHER_WORK
    }
    return {**dict(_definition(workload, experiment)), **options, **_unrecorded(workload, experiment)}


def _unrecorded(workload: str, experiment: Experiment) -> dict[str, str | None]:
    """Return the texts that no experiment records: files of the same name may have different statements."""
    if workload == USER_SCRIPTS:
        return {"text of the scripts": None}
    return {"text of the captured workload": None} if workload in experiment.likenesses else {}


def _definition(workload: str, experiment: Experiment) -> list[tuple[str, str | None]]:
    cell = experiment.cells.get(workload)
    clients = cell.clients if cell else experiment.design.clients
    return [
        ("scale of the data set", _text(experiment.scales, workload)),
        ("load generator", _text(experiment.generators, workload)),
        ("clients", str(clients)),
        ("what is counted", experiment.operations.get(workload, "transactions")),
        ("data between rounds", _text(experiment.reset_policies, workload)),
        ("cell", f"{cell.load}, {numbers.size(cell.database_bytes)}" if cell else "none"),
    ]


def _text(values: Mapping[str, Any], workload: str) -> str | None:
    return str(values[workload]) if workload in values else None


def _in_words(conflicts: list[Difference]) -> list[str]:
    shown = [f"{one.subject}: {one.a} on A, {one.b} on B" for one in conflicts[:_MOST_LISTED]]
    return shown if len(conflicts) <= _MOST_LISTED else [*shown, f"and {len(conflicts) - _MOST_LISTED} more"]


def _variants(a: Experiment, b: Experiment) -> tuple[tuple[str, ...], list[str]]:
    """Return the names of variants that have the same settings in both, and why the others are left out.

    Raises: UsageError if there are none.
    """
    of_a, of_b = ({one.name: one for one in experiment.variants} for experiment in (a, b))
    both = [name for name in of_a if name in of_b]
    others = [
        f"variant {name} has different settings on A and B: {_settings(of_a[name], of_b[name])}"
        for name in both
        if of_a[name].settings != of_b[name].settings
    ]
    same = tuple(name for name in both if of_a[name].settings == of_b[name].settings)
    if not same:
        raise UsageError(
            "A and B have no variant in common",
            detail="; ".join(others) or f"A measured {_listed([*of_a])}; B measured {_listed([*of_b])}",
            hint="measure variants of the same names and settings on both machines",
        )
    for side, mine, rest in ((A, of_a, of_b), (B, of_b, of_a)):
        others += [f"variant {name}: only {side} measured it" for name in mine if name not in rest]
    return same, others


def _settings(a: Variant, b: Variant) -> str:
    """Return the differing settings of two variants of the same name, in words."""
    differing = {
        display_name(name): (a.settings.get(name, _UNSET), b.settings.get(name, _UNSET))
        for name in dict.fromkeys((*a.settings, *b.settings))
        if a.settings.get(name) != b.settings.get(name)
    }
    return _listed([f"{name} {of_a} and {of_b}" for name, (of_a, of_b) in differing.items()])


def _only_in_one(a: Experiment, b: Experiment) -> Iterator[str]:
    for side, mine, rest in ((A, a, b), (B, b, a)):
        yield from (f"{name}: only {side} ran it" for name in mine.workloads if name not in rest.workloads)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown} and {len(names) - _MOST_LISTED} more"
