"""Which experiments of a fleet ran on which machine. Pure.

A bundle names no machine: names of hosts are left out of it. So a machine is told by its processor, caches
and memory, and experiments on alike ones count as one: two experiments on one machine say little about
others, and to take them for two would make every interval too short. Where several machines are alike, the
user names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from pgdyno.experiments.fleets.hardware import DISKS, IDENTITY, TOLD
from pgdyno.model import numbers
from pgdyno.model.errors import UsageError
from pgdyno.model.experiments.fleet import FleetExperiment, FleetMachine
from pgdyno.model.fleets.finding import FleetFinding

_ALIKE_MEMORY = 0.03  # arbitrary: kernels keep 1 to 2 % for themselves, modules differ by far more
_NAMED = 5  # machines in a sentence
_NAMES = "name all of them or none: NAME=FILE, for example db1=a.zip db2=b.zip"


@dataclass(frozen=True)
class Given:
    """An experiment as it is given: a file or an id, the machine's name or None, and its finding."""

    source: str
    name: str | None
    finding: FleetFinding


@dataclass(frozen=True)
class Member:
    """An experiment of a fleet, with the name of its machine."""

    source: str
    machine: str
    finding: FleetFinding

    @property
    def label(self) -> str:
        """The machine and the experiment's source."""
        return f"{self.machine} ({self.source})"


def members_of(given: Sequence[Given]) -> tuple[Member, ...]:
    """Return the experiments with their machines: as the user names them, else letters by their hardware.

    Raises: UsageError if only some are named, or machines of one name have different hardware.
    """
    named = [one for one in given if one.name is not None]
    if named and len(named) < len(given):
        unnamed = next(one.source for one in given if one.name is None)
        raise UsageError(
            f'"{named[0].name}" is a machine\'s name, and {unnamed} has none',
            detail="whether they are the same machine cannot be told then",
            hint=_NAMES,
        )
    return _by_name(given) if named else _by_hardware(given)


def machines_of(members: Sequence[Member]) -> tuple[FleetMachine, ...]:
    """Return the machines in the order in which they were given."""
    found: dict[str, list[Member]] = {}
    for one in members:
        found.setdefault(one.machine, []).append(one)
    return tuple(
        FleetMachine(
            name,
            _facts([one.finding for one in ones]),
            tuple(
                FleetExperiment(one.source, one.finding.experiment, one.finding.created, one.finding.question)
                for one in ones
            ),
        )
        for name, ones in found.items()
    )


def identity_notes(members: Sequence[Member], *, is_named: bool) -> list[str]:
    """Return in sentences the assumptions behind the number of machines."""
    by_machine: dict[str, list[FleetFinding]] = {}
    for one in members:
        by_machine.setdefault(one.machine, []).append(one.finding)
    if not is_named:
        return [
            f"{name}: {len(ones)} experiments on alike processors, caches and memory count as one machine; "
            f"if there are several, {_NAMES}"
            for name, ones in by_machine.items()
            if len(ones) > 1
        ]
    return [*_exchanged(members), *_alike({name: ones[0] for name, ones in by_machine.items()})]


def _alike(machines: Mapping[str, FleetFinding]) -> Iterator[str]:
    """Yield the machines that are several by their names alone."""
    groups: list[list[str]] = []
    for name, finding in machines.items():
        same = (one for one in groups if not _hardware_difference(machines[one[0]], finding))
        if (group := next(same, None)) is None:
            groups.append([name])
        else:
            group.append(name)
    for names in groups:
        if len(names) > 1:
            more = len(names) - _NAMED
            listed = ", ".join(names[:_NAMED] if more > 0 else names[:-1])
            count = "two" if len(names) == 2 else str(len(names))
            yield (
                f"{listed} and {f'{more} more' if more > 0 else names[-1]} have alike processors, caches and "
                f"memory: they are {count} machines by their names"
            )


def _exchanged(members: Sequence[Member]) -> Iterator[str]:
    """Yield memory and disks that differ from those in a machine's first experiment."""
    first: dict[str, Member] = {}
    for one in members:
        other = first.setdefault(one.machine, one)
        a, b = other.finding, one.finding
        found = [*_memory_difference(a, b), *_differences(a, b, [DISKS])]
        if found:
            yield (
                f"{other.source} and {one.source} are of one machine by its name, {one.machine}, "
                f"in spite of other {'; '.join(found)}"
            )


def _by_name(given: Sequence[Given]) -> tuple[Member, ...]:
    first: dict[str, Given] = {}
    for one in given:
        other = first.setdefault(str(one.name), one)
        if different := _differences(other.finding, one.finding, IDENTITY):
            raise UsageError(
                f'{other.source} and {one.source} are both of "{one.name}", and not of one machine',
                detail="; ".join(different),
                hint="give each machine a name of its own",
            )
    return tuple(Member(one.source, str(one.name), one.finding) for one in given)


def _by_hardware(given: Sequence[Given]) -> tuple[Member, ...]:
    machines: list[list[FleetFinding]] = []
    found = []
    for one in given:
        place = next(
            (
                position
                for position, others in enumerate(machines)
                if not any(_hardware_difference(other, one.finding) for other in others)
            ),
            len(machines),
        )
        if place == len(machines):
            machines.append([])
        machines[place].append(one.finding)
        found.append(Member(one.source, _letter(place), one.finding))
    return tuple(found)


def _letter(position: int) -> str:
    """Return A, B and so on; after Z come A2, B2."""
    turn, place = divmod(position, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(turn + 1) if turn else "")


def _hardware_difference(a: FleetFinding, b: FleetFinding) -> list[str]:
    """Return which hardware is known to differ, apart from disks: data move from one to another."""
    return [*_differences(a, b, IDENTITY), *_memory_difference(a, b)]


def _differences(a: FleetFinding, b: FleetFinding, subjects: Sequence[str]) -> list[str]:
    told = [(subject, a.facts.get(subject), b.facts.get(subject)) for subject in subjects]
    return [
        f"{subject}: {of_a} and {of_b}"
        for subject, of_a, of_b in told
        if of_a is not None and of_b is not None and of_a != of_b
    ]


def _memory_difference(a: FleetFinding, b: FleetFinding) -> list[str]:
    """Return both sizes, unless they are alike but for the kernels' own share, or one is unknown."""
    if a.memory_bytes is None or b.memory_bytes is None:
        return []
    sizes = (a.memory_bytes, b.memory_bytes)
    if max(sizes) - min(sizes) <= _ALIKE_MEMORY * max(sizes):
        return []
    return [f"memory: {numbers.size(sizes[0])} and {numbers.size(sizes[1])}"]


def _facts(findings: Sequence[FleetFinding]) -> Mapping[str, str]:
    """Return the known facts; where a machine's experiments differ, all values."""
    facts = {}
    for subject in TOLD:
        values = dict.fromkeys(one.facts[subject] for one in findings if subject in one.facts)
        if values:
            facts[subject] = " / ".join(values)
    return facts
