"""The contract of studies: their options, and the facts about the host they see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pgdyno.host.io_uring import IoUringObstacle
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.plans.plan import Layer
from pgdyno.model.variants.variant import Variant

Value_co = TypeVar("Value_co", covariant=True)

APPLICATION, SYSTEM = "application", "system"  # one layer of the plan alone
PGTUNE, TUNED = "pgtune", "tuned"
"""Names of the configurations that a study may find in its context."""


@dataclass(frozen=True)
class Machine:
    """The resources that a study scales itself to."""

    cpus: int  # that may be used
    available_bytes: int


@dataclass(frozen=True)
class Option(Generic[Value_co]):
    """An option that some studies take: command line, help, refusal and repeat command follow from it.

    ``read`` makes the value of the texts that were given: none, one, or several of a repeatable option.
    It raises UsageError for a text that is no value.
    """

    name: str  # without hyphens before
    help: str  # without the study's name
    read: Callable[[tuple[str, ...]], Value_co]
    metavar: str = "NAME"
    is_flag: bool = False
    is_repeatable: bool = False
    is_recorded: bool = True  # False: it can be told from the results
    usual: str | None = None  # what is recorded when it was not given
    is_of_own_servers: bool = False  # a running server has no place for it

    def recorded(self, texts: tuple[str, ...]) -> str | None:
        """Return the text that reproduces the given values; None if nothing is recorded."""
        if not self.is_recorded or not texts:
            return self.usual
        return ",".join(texts) if self.is_repeatable else texts[-1]


def last(texts: tuple[str, ...]) -> str | None:
    """Read an option whose value is its text; None if it was not given."""
    return texts[-1] if texts else None


def is_given(texts: tuple[str, ...]) -> bool:
    """Read a flag."""
    return bool(texts)


def separated(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Read a repeatable option; one text may hold several values, separated by commas."""
    return tuple(value for text in texts for value in text.split(","))


@dataclass(frozen=True)
class Sizing:
    """The request to a study that brings its own workloads.

    A study that spans a grid makes it of ``loads``, and chooses its cells by what fits into ``budget_s`` in
    as many ``rounds`` as a verdict needs; None: all of them.
    """

    given: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # texts by the option's name
    clients: int | None = None
    max_wal_sizes: tuple[
        str, ...
    ] = ()  # between which a factor varies: how much disk is needed depends on it
    machine: Machine = Machine(1, 0)
    loads: tuple[Workload, ...] = ()
    chosen: tuple[str, ...] = ()  # loads of the study's own; none: the usual ones
    rounds: int = 1
    budget_s: float | None = None
    scale: float | None = None

    def of(self, option: Option[Value_co]) -> Value_co:
        """Return an option's value. Raises: UsageError for a text that is none."""
        return option.read(self.given.get(option.name, ()))


@dataclass(frozen=True)
class IoSupport:
    """A server's support for asynchronous I/O on this host."""

    server: str  # for sentences: "PostgreSQL 18.6 (embedded)"
    major: int
    cpus: int  # that it may use
    io_uring_obstacle: IoUringObstacle | None  # None: it can use io_uring
    named: str | None = None  # by a variant; None: the server of variants that name none


@dataclass(frozen=True)
class Pool:
    """Huge pages of one size: the kernel's file of their number, and how many there are to be."""

    path: str
    found: int
    wanted: int  # with those of one server of the study; never fewer than were found
    obstacle: str | None = None  # why they cannot be had


@dataclass(frozen=True)
class PageSupport:
    """Kinds of pages available here for a server's memory.

    Pools are by the size of their pages, in bytes.
    """

    pools: Mapping[int, Pool]
    choices: Mapping[str, tuple[str, ...]]  # of transparent huge pages, by the kernel's file


@dataclass(frozen=True)
class StudyContext:
    """The baseline, the chosen workloads and design, and ready-made sets of settings by name.

    ``configurations`` holds what this host's facts lead to, as far as the server's build and the kernel
    accept it: pgdyno's own plan, and what others would set where that is known. ``notes`` say what was left
    out. ``sizing`` is for studies that bring their own workloads, ``io`` for those that need to know it: what
    every server can do that is measured, in their order; likewise ``pages``.
    ``factors`` replace the study's variants by their combinations afterwards. ``servers`` are the builds of
    those configurations that have one of their own, ``layers`` the configurations between the baseline and
    the plan, each of which has one more layer of it.
    """

    baseline: Variant
    workloads: tuple[str, ...]
    design: Design
    configurations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sizing: Sizing = field(default_factory=Sizing)
    factors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    io: tuple[IoSupport, ...] = ()
    pages: PageSupport | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    layers: tuple[str, ...] = ()

    def configured(self, name: str) -> Variant:
        """Return the baseline with one of the configurations on top, and its programs."""
        return replace(
            self.baseline,
            name=name,
            settings={**self.baseline.settings, **self.configurations[name]},
            server=self.servers.get(name, self.baseline.server),
        )


def no_settings(_sizing: Sizing) -> Mapping[str, str]:
    """Return that nothing belongs to a study's workloads."""
    return {}


@dataclass(frozen=True)
class BundledStudy:
    """A study as its file describes it; options that are not its own are refused."""

    title: str  # what ``pgdyno run --list`` prints
    study: Callable[[StudyContext], Study]
    needs_plan: bool = False  # it compares the configurations that are made for this host
    layers: tuple[Layer, ...] = (Layer.APPLICATION,)  # which are planned for it
    needs_peers: bool = False  # it compares every peer's configuration with the plan
    measures: tuple[str, ...] = ()  # bundled workloads, unless others are asked for
    generator: str | None = None  # that issues these, unless another one is asked for
    workloads: Callable[[Sizing], Mapping[str, Workload]] | None = None  # that it brings itself
    settings: Callable[[Sizing], Mapping[str, str]] = no_settings  # of servers, that belong to them
    passes: str | None = None  # the module with ``PASSES``, which measures them if they are steps
    loads: tuple[str, ...] = ()  # names of its own loads among which one can choose
    takes_workloads: bool = False  # those that it measures are any, in place of ``measures``
    design: Design = field(default_factory=Design)  # for what no option asks for
    budget_s: float | None = None  # how long it measures unless told; None: as many rounds as its design has
    options: tuple[Option[Any], ...] = ()
    takes_scale: bool = False  # --scale is the size of its own data, and may be a fraction
    takes_server: bool = False  # it can be measured on a running server
    needs_io_support: bool = False  # it has to know what the server can do about asynchronous I/O
    needs_page_support: bool = False  # it has to know what pages a server's memory can be put on

    def with_loads_of(self, other: BundledStudy) -> BundledStudy:
        """Return this study with the workloads of another one, their options and their design."""
        return replace(
            self,
            workloads=other.workloads,
            settings=other.settings,
            passes=other.passes,
            measures=(),
            design=other.design,
            options=(*self.options, *other.options),
            takes_scale=other.takes_scale,
        )

    def takes(self, option: Option[Any]) -> bool:
        """Whether an option is the study's own."""
        return option in self.options

    def recorded_options(self, sizing: Sizing) -> dict[str, str]:
        """Return the option texts that repeat this measurement, by option."""
        found = {one.name: one.recorded(sizing.given.get(one.name, ())) for one in self.options}
        return {name: text for name, text in found.items() if text is not None}

    def grid_options(self, sizing: Sizing) -> dict[str, str]:
        """Return the option texts that repeat this grid, by option."""
        asked = {
            "clients": None if sizing.clients is None else str(sizing.clients),
            "workload": ",".join(sizing.chosen) or None,
            "budget": None if sizing.budget_s is None else f"{sizing.budget_s:g}s",
        }
        known = {name: text for name, text in asked.items() if text is not None}
        return {**self.recorded_options(sizing), **known}
