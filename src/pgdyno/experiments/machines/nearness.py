"""How near an experiment's host and load are to those at hand, in steps that add up. Pure.

    fact                      steps                                             too far
    PostgreSQL                                                                  another major version
    CPUs of the server        doublings between the two                         more than two
    memory                    doublings                                         more than two
    data over memory          doublings; less than a half counts as a half      more than two
    load                      1 without a workload of the same name and kind    none of the same kind: what it
                                                                                 counts, and whether it writes
    disks                     2 if they rotate on one side alone
    processor                 1 for another model, 2 for another family
    virtual machine           1 if one side alone is one

All of it is arbitrary, but for the order: what decides how large a setting may be weighs most. What is known
here and was not recorded there is one step; what is not known here is not compared. An experiment whose host
was not recorded at all is too far.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pgdyno.experiments.machines.recorded_facts import cpus_of_server, disks, fact_at, is_split
from pgdyno.model import numbers
from pgdyno.model.experiments.experiment import Experiment, ResetPolicy

_MOST_DOUBLINGS = 2.0
_SAME_DOUBLINGS = 0.2  # 15 %: what two machines of one type differ by
_IN_MEMORY = 0.5  # data that take less than this share of the memory are all read from it
_VIRTUAL, _REAL = "a virtual machine", "a real machine"
_DATA = "data are {} of the memory"
_MOST_BYTES = 1 << 63  # of what a document may say
_MOST_LETTERS, _MOST_NAMED = 60, 2  # of what it says, in a line
_SIGNS = re.compile(r"\((R|TM|r|tm)\)|\bCPU\b|@.*|^\d+th Gen ")


@dataclass(frozen=True)
class Circumstances:
    """The facts about a host and its load that are compared; None: not known.

    ``loads`` are the kinds of the workloads, by their names: "transactions that write".
    """

    major: int | None = None
    processor: str | None = None
    cpus: float | None = None
    memory_bytes: float | None = None
    data_bytes: float | None = None
    disks: str | None = None
    machine: str | None = None
    loads: Mapping[str, str] | None = None

    @property
    def data_share(self) -> float | None:
        """The data as a share of the memory."""
        if self.data_bytes is None or self.memory_bytes is None:
            return None
        return self.data_bytes / self.memory_bytes


@dataclass(frozen=True)
class Gap:
    """One fact that is not the same there as here, in words."""

    steps: float
    words: str
    is_too_far: bool = False


@dataclass(frozen=True)
class Nearness:
    """All that is not the same there as here, the farthest first."""

    gaps: tuple[Gap, ...]

    @property
    def steps(self) -> float:
        """How far it is."""
        return sum(one.steps for one in self.gaps)

    @property
    def why_not(self) -> str:
        """Why nothing from there is tried here; nothing if it is near enough."""
        return "; ".join(one.words for one in self.gaps if one.is_too_far)

    @property
    def words(self) -> str:
        """All differences."""
        return "; ".join(one.words for one in self.gaps) or "host and load as here"


def nearness(there: Circumstances, here: Circumstances) -> Nearness:
    """Return how near circumstances are to those here."""
    return Nearness(tuple(sorted(_gaps(there, here), key=lambda one: (not one.is_too_far, -one.steps))))


def circumstances_of(experiment: Experiment) -> Circumstances:
    """Return the circumstances of a recorded experiment."""
    version = re.match(r"\d{1,4}", str(fact_at(experiment.server, "version") or ""))
    return on_host(
        experiment.host,
        is_isolated=is_split(experiment),
        major=int(version[0]) if version else None,
        data_bytes=_amount(fact_at(experiment.server, "databases_bytes")),
        loads={
            name: kind_of_load(
                experiment.operation(name) or "transactions",
                is_read_only=experiment.reset_policies.get(name) is ResetPolicy.KEEP,
            )
            for name in experiment.workloads
        },
    )


def on_host(
    host: Mapping[str, Any],
    *,
    is_isolated: bool,
    major: int | None,
    data_bytes: float | None,
    loads: Mapping[str, str],
) -> Circumstances:
    """Return the circumstances on a host, whose facts are a document."""
    memory = [_amount(fact_at(host, path)) for path in ("memory.total_bytes", "limits.memory_bytes")]
    processor = fact_at(host, "cpu.model")
    machine = _machine(fact_at(host, "cpu.virtualisation"))
    return Circumstances(
        major=major,
        processor=processor if isinstance(processor, str) else None,
        cpus=_amount(cpus_of_server(host, is_isolated=is_isolated)),
        memory_bytes=min((one for one in memory if one is not None), default=None),
        data_bytes=data_bytes,
        disks=_disks(host, machine),
        machine=machine,
        loads=loads,
    )


def kind_of_load(operation: str, *, is_read_only: bool) -> str:
    """Return the kind of a workload in words, by the unit of its rate."""
    return f"{operation} that {'only read' if is_read_only else 'write'}"


def _gaps(there: Circumstances, here: Circumstances) -> Iterator[Gap]:
    found = [
        _of_major(there.major, here.major),
        *_of_host(there, here),
        _between(there.data_share, here.data_share, _DATA, numbers.share, _IN_MEMORY),
        _of_loads(there.loads, here.loads),
    ]
    yield from (one for one in found if one is not None)


def _of_host(there: Circumstances, here: Circumstances) -> Iterator[Gap | None]:
    if there.processor is None and there.cpus is None and there.memory_bytes is None:
        yield Gap(math.inf, "its host is not recorded", is_too_far=True)
        return
    yield _between(there.cpus, here.cpus, "{} CPU" if there.cpus == 1 else "{} CPUs", numbers.plain)
    yield _between(there.memory_bytes, here.memory_bytes, "{} of memory", numbers.size)
    yield _of_kind(there.disks, here.disks, 2.0)
    yield _of_processor(there.processor, here.processor)
    yield _of_kind(there.machine, here.machine, 1.0)


def _of_major(there: int | None, here: int | None) -> Gap | None:
    if here is None or there == here:
        return None
    if there is None:
        return Gap(math.inf, "its PostgreSQL is not recorded", is_too_far=True)
    return Gap(math.inf, f"PostgreSQL {there} there, {here} here", is_too_far=True)


def _between(
    there: float | None, here: float | None, words: str, shown: Callable[[float], str], least: float = 0.0
) -> Gap | None:
    """Return how far two amounts are apart; those below ``least`` count as that."""
    if here is None:
        return None
    if there is None:
        return Gap(1.0, f"{words.format('unknown')} there, {shown(here)} here")
    steps = abs(math.log2(max(there, least) / max(here, least)))
    if steps < _SAME_DOUBLINGS:
        return None
    return Gap(steps, f"{words.format(shown(there))} there, {shown(here)} here", steps > _MOST_DOUBLINGS)


def _of_loads(there: Mapping[str, str] | None, here: Mapping[str, str] | None) -> Gap | None:
    if not here or (there and there.items() & here.items()):
        return None
    if not there:
        return Gap(1.0, "unknown load there")
    kinds = [set(one.values()) for one in (there, here)]
    is_other = not kinds[0] & kinds[1]
    by_kind = is_other or bool(there.keys() & here.keys())  # which names do not tell apart
    told = [
        _listed(sorted(one) if by_kind else [*names]) for one, names in zip(kinds, (there, here), strict=True)
    ]
    return Gap(1.0, f"{told[0]} there, {told[1]} here", is_other)


def _of_processor(there: str | None, here: str | None) -> Gap | None:
    if here is None or there == here:
        return None
    if there is None:
        return Gap(1.0, "an unknown processor there")
    names = [" ".join(_SIGNS.sub(" ", one).split())[:_MOST_LETTERS] for one in (there, here)]
    families = [one.split()[:2] for one in names]
    return Gap(1.0 if families[0] == families[1] else 2.0, f"{names[0]} there, {names[1]} here")


def _of_kind(there: str | None, here: str | None, steps: float) -> Gap | None:
    if here is None or there == here:
        return None
    return Gap(1.0 if there is None else steps, f"{there or 'unknown'} there, {here} here")


def _listed(names: list[str]) -> str:
    shown, rest = [one[:_MOST_LETTERS] for one in names[:_MOST_NAMED]], len(names) - _MOST_NAMED
    return f"{', '.join(shown)} and {rest} more" if rest > 0 else " and ".join(shown)


def _amount(value: Any) -> float | None:
    """Return an amount that a document has, if it is a possible one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < _MOST_BYTES else None


def _machine(name: Any) -> str | None:
    """Return the kind of a machine. A container alone is no virtual one."""
    if not isinstance(name, str):
        return None
    is_virtual = name != "none" and (not name.startswith("container:") or " on " in name)
    return _VIRTUAL if is_virtual else _REAL


def _disks(host: Mapping[str, Any], machine: str | None) -> str | None:
    """Return the kind of the disks. Virtual ones rotate by their own account whatever lies below them."""
    found = [fact_at(one, "is_rotational") for one in disks(host)]
    if not found or any(not isinstance(one, bool) for one in found):
        return None
    if not any(found):
        return "solid-state disks"
    return "rotating disks" if machine == _REAL else None
