"""Assigns the experiments of a fleet to machines. Pure.

A bundle does not contain host names. Machines are therefore identified by processor, caches and memory, and
experiments on matching hardware count as one machine: counting one machine as two would make every interval
too short. If several machines match, the user names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from string import ascii_uppercase

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.measure.records.recorded_facts import fact_at, of_host, of_server
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.fleet import FleetExperiment, FleetMachine
from pgdyno.results.machines.machine_facts import MACHINE

_CHANGES_ON_A_MACHINE = ("SMT", "CPUs for the server", "NUMA nodes", "frequency")
"""Facts that may differ between experiments on one machine: its setup, or the source of a fact, changed."""

_HARDWARE = {subject: read for subject, read in MACHINE if subject not in _CHANGES_ON_A_MACHINE}
_FACTS = {**_HARDWARE, "kernel": of_host("kernel.release"), "PostgreSQL": of_server("version")}
_DISKS = "disks"
_IDENTITY = tuple(subject for subject in _HARDWARE if subject not in ("memory", _DISKS))
"""Hardware that a machine keeps. Different memory or disks under one name are accepted, with a warning."""

_SAME_MEMORY = 0.03  # arbitrary: kernels keep 1 to 2 % for themselves, modules differ by far more
_MOST_NAMED = 5  # machines in a sentence
_NAMES = "name all of them or none: NAME=FILE, for example db1=a.zip db2=b.zip"


@dataclass(frozen=True, eq=False)
class Member:
    """An experiment of a fleet, with the file or id that names it, and its machine's name ("" if none)."""

    source: str
    machine: str
    experiment: Experiment

    @property
    def label(self) -> str:
        """Machine and source of the experiment."""
        return f"{self.machine} ({self.source})"

    @cached_property
    def facts(self) -> Mapping[str, str]:
        """Known facts of the machine, in words."""
        found = {subject: read(self.experiment) for subject, read in _FACTS.items()}
        return {subject: words for subject, words in found.items() if words is not None}


def members_of(given: Sequence[Member]) -> tuple[Member, ...]:
    """Return the experiments with their machines: the user's names, or else one letter per distinct hardware.

    Raises: UsageError if only some are named, or if machines of the same name have different hardware.
    """
    named = [one for one in given if one.machine]
    if not named:
        groups = _matching(given)
        return tuple(
            replace(one, machine=next(_letter(place) for place, ones in enumerate(groups) if one in ones))
            for one in given
        )
    if len(named) < len(given):
        unnamed = next(one.source for one in given if not one.machine)
        raise UsageError(
            f'{named[0].source} names its machine "{named[0].machine}", but {unnamed} names none',
            detail="it is unknown whether they ran on the same machine",
            hint=_NAMES,
        )
    for first, one in _with_first(given):
        if different := _differences(first, one, _IDENTITY):
            raise UsageError(
                f'{first.source} and {one.source} both name the machine "{one.machine}", but it differs',
                detail="; ".join(different),
                hint="give each machine its own name",
            )
    return tuple(given)


def machines_of(members: Sequence[Member]) -> tuple[FleetMachine, ...]:
    """Return the machines in the given order."""
    return tuple(
        FleetMachine(
            name,
            _facts(ones),
            tuple(
                FleetExperiment(one.source, of.id, of.created, of.question)
                for one in ones
                for of in [one.experiment]
            ),
        )
        for name, ones in by_machine(members).items()
    )


def by_machine(members: Sequence[Member]) -> dict[str, list[Member]]:
    """Return the experiments of each machine."""
    found: dict[str, list[Member]] = {}
    for one in members:
        found.setdefault(one.machine, []).append(one)
    return found


def identity_notes(members: Sequence[Member], *, is_named: bool) -> list[str]:
    """Return sentences on the assumptions behind the number of machines."""
    if is_named:
        return [*_exchanged(members), *_several_by_name(members)]
    return [
        f"{name}: {len(ones)} experiments with matching processors, caches and memory count as one machine; "
        f"if they ran on several, {_NAMES}"
        for name, ones in by_machine(members).items()
        if len(ones) > 1
    ]


def _several_by_name(members: Sequence[Member]) -> Iterator[str]:
    """Yield a sentence on each group of machines that differ only by name."""
    for ones in _matching([ones[0] for ones in by_machine(members).values()]):
        if len(ones) > 1:
            names, more = [one.machine for one in ones], len(ones) - _MOST_NAMED
            listed = ", ".join(names[:_MOST_NAMED] if more > 0 else names[:-1])
            yield (
                f"{listed} and {f'{more} more' if more > 0 else names[-1]} have matching processors, caches "
                f"and memory: they count as {'two' if len(ones) == 2 else len(ones)} machines because of "
                "their names"
            )


def _exchanged(members: Sequence[Member]) -> Iterator[str]:
    """Yield a sentence on each experiment with other memory or disks than its machine's first experiment."""
    for first, one in _with_first(members):
        if found := [*_memory_difference(first, one), *_differences(first, one, [_DISKS])]:
            yield (
                f"{first.source} and {one.source} count as one machine because of its name, {one.machine}, "
                f"although these differ: {'; '.join(found)}"
            )


def _with_first(members: Sequence[Member]) -> list[tuple[Member, Member]]:
    """Return each experiment with the first one of its machine."""
    return [(ones[0], one) for ones in by_machine(members).values() for one in ones]


def _matching(members: Sequence[Member]) -> list[list[Member]]:
    """Return groups without known differences in hardware; disks are ignored, because they can be moved."""
    groups: list[list[Member]] = []
    for one in members:
        for group in groups:
            if not any(_differences(of, one, _IDENTITY) or _memory_difference(of, one) for of in group):
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _letter(position: int) -> str:
    """Return A, B and so on; A2, B2 after Z."""
    turn, place = divmod(position, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(turn + 1) if turn else "")


def _differences(a: Member, b: Member, subjects: Sequence[str]) -> list[str]:
    known = [subject for subject in subjects if subject in a.facts and subject in b.facts]
    return [f"{of}: {a.facts[of]} and {b.facts[of]}" for of in known if a.facts[of] != b.facts[of]]


def _memory_difference(a: Member, b: Member) -> list[str]:
    """Return both sizes in words; empty if equal within ``_SAME_MEMORY``, or if one is unknown."""
    sizes = [fact_at(one.experiment.host, "memory.total_bytes") for one in (a, b)]
    if not all(isinstance(one, int) for one in sizes) or max(sizes) - min(sizes) <= _SAME_MEMORY * max(sizes):
        return []
    return [f"memory: {numbers.size(sizes[0])} and {numbers.size(sizes[1])}"]


def _facts(members: Sequence[Member]) -> Mapping[str, str]:
    """Return the known facts; all values of a fact if a machine's experiments differ."""
    values = {of: dict.fromkeys(one.facts[of] for one in members if of in one.facts) for of in _FACTS}
    return {of: " / ".join(known) for of, known in values.items() if known}
