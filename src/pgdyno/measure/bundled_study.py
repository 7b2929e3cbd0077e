"""The interface of bundled studies: their options, and the host facts available to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pgdyno.host.probes import IoUringObstacle
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.plans.plan import Layer
from pgdyno.model.variants.variant import Variant

Value_co = TypeVar("Value_co", covariant=True)

APPLICATION, SYSTEM = "application", "system"  # a single layer of the plan
PGTUNE, TUNED = "pgtune", "tuned"
"""Names of the configurations that a study may find in its context."""


@dataclass(frozen=True)
class Machine:
    """The resources that a study scales itself to."""

    cpus: int  # usable CPUs
    available_bytes: int


@dataclass(frozen=True)
class Option(Generic[Value_co]):
    """An option of some studies: defines its parsing, its help, its rejection and the repeat command.

    ``read`` converts the texts given on the command line: none, one, or several for a repeatable option.
    It raises UsageError for an invalid text.
    """

    name: str  # without leading hyphens
    help: str  # without the study's name
    read: Callable[[tuple[str, ...]], Value_co]
    metavar: str = "NAME"
    is_flag: bool = False
    is_repeatable: bool = False
    is_recorded: bool = True  # False: the results show its value
    usual: str | None = None  # recorded if the option was not given
    is_of_own_servers: bool = False  # not applicable to a running server

    def recorded(self, texts: tuple[str, ...]) -> str | None:
        """Return the text that reproduces the given values; None if nothing is recorded."""
        if not self.is_recorded or not texts:
            return self.usual
        return ",".join(texts) if self.is_repeatable else texts[-1]


def last(texts: tuple[str, ...]) -> str | None:
    """Return the text of a text option; None if it was not given."""
    return texts[-1] if texts else None


def is_given(texts: tuple[str, ...]) -> bool:
    """Return whether a flag was given."""
    return bool(texts)


def separated(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of a repeatable option; one text may hold several, separated by commas."""
    return tuple(value for text in texts for value in text.split(","))


@dataclass(frozen=True)
class Sizing:
    """The user's request to a study that defines its own workloads.

    A grid study builds its grid from ``loads``. It selects the cells that fit into ``budget_s`` with as many
    ``rounds`` as a verdict needs; None: all cells.
    """

    given: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # texts by the option's name
    clients: int | None = None
    max_wal_sizes: tuple[str, ...] = ()  # the levels of a factor; they determine the disk space needed
    machine: Machine = Machine(1, 0)
    loads: tuple[Workload, ...] = ()
    chosen: tuple[str, ...] = ()  # the study's own loads, by name; empty: the usual ones
    rounds: int = 1
    budget_s: float | None = None
    scale: float | None = None

    def of(self, option: Option[Value_co]) -> Value_co:
        """Return an option's value. Raises: UsageError for an invalid text."""
        return option.read(self.given.get(option.name, ()))


@dataclass(frozen=True)
class IoSupport:
    """A server's support for asynchronous I/O on this host."""

    server: str  # for sentences: "PostgreSQL 18.6 (embedded)"
    major: int
    cpus: int  # usable by the server
    io_uring_obstacle: IoUringObstacle | None  # None: io_uring is available
    named: str | None = None  # as variants name it; None: the server of variants that name none


@dataclass(frozen=True)
class Pool:
    """The pool of huge pages of one size: the kernel file with its size, and the current and wanted sizes."""

    path: str
    found: int
    wanted: int  # enough for one server of the study as well; never below ``found``
    obstacle: str | None = None  # why the pool cannot grow to that size


@dataclass(frozen=True)
class PageSupport:
    """The page sizes available on this host for a server's memory."""

    pools: Mapping[int, Pool]  # by page size in bytes
    choices: Mapping[str, tuple[str, ...]]  # for transparent huge pages, by kernel file


@dataclass(frozen=True)
class StudyContext:
    """The inputs of a study: baseline, workloads, design, and named configurations.

    ``configurations`` are sets of settings derived from this host's facts: pgdyno's plan, and those of other
    tuners where known. Settings that the server's build or the kernel does not accept are left out; ``notes``
    list them. ``sizing`` is for studies that define their own workloads. ``io`` has the I/O support of every
    measured server, in order; ``pages`` the available page sizes; both only for studies that need them.
    ``factors`` later replace the study's variants by their combinations. ``servers`` are the builds of
    configurations that need their own build. ``layers`` are the configurations between the baseline and the
    plan, each with one more layer of the plan.
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
        """Return the baseline with a configuration's settings and build."""
        return replace(
            self.baseline,
            name=name,
            settings={**self.baseline.settings, **self.configurations[name]},
            server=self.servers.get(name, self.baseline.server),
        )


def no_settings(_sizing: Sizing) -> Mapping[str, str]:
    """Return no settings, for a study with workloads that need none."""
    return {}


@dataclass(frozen=True)
class BundledStudy:
    """A study as its file defines it; it rejects all options but its own."""

    title: str  # printed by ``pgdyno run --list``
    study: Callable[[StudyContext], Study]
    needs_plan: bool = False  # compares configurations generated for this host
    layers: tuple[Layer, ...] = (Layer.APPLICATION,)  # to be planned
    needs_peers: bool = False  # compares every peer's configuration with the plan
    measures: tuple[str, ...] = ()  # default bundled workloads
    generator: str | None = None  # default load generator of these
    workloads: Callable[[Sizing], Mapping[str, Workload]] | None = None  # its own workloads
    settings: Callable[[Sizing], Mapping[str, str]] = no_settings  # server settings that its workloads need
    passes: str | None = None  # module with ``PASSES``, which measures workloads that are steps
    loads: tuple[str, ...] = ()  # names of its own loads that the user can select
    takes_workloads: bool = False  # accepts any workloads in place of ``measures``
    design: Design = field(default_factory=Design)  # defaults for options not given
    budget_s: float | None = None  # default budget; None: the design's number of rounds
    options: tuple[Option[Any], ...] = ()
    takes_scale: bool = False  # --scale sets the size of its own data; it may be a fraction
    takes_server: bool = False  # can run on a running server
    needs_io_support: bool = False  # needs ``StudyContext.io``
    needs_page_support: bool = False  # needs ``StudyContext.pages``

    def with_loads_of(self, other: BundledStudy) -> BundledStudy:
        """Return this study with the workloads of another study, and their options and design."""
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
        """Whether the study has this option."""
        return option in self.options

    def recorded_options(self, sizing: Sizing) -> dict[str, str]:
        """Return the option texts that repeat this measurement, by option."""
        found = {one.name: one.recorded(sizing.given.get(one.name, ())) for one in self.options}
        return {name: text for name, text in found.items() if text is not None}

    def grid_options(self, sizing: Sizing) -> dict[str, str]:
        """Return the option texts that repeat this grid, by option."""
        texts = {
            "clients": None if sizing.clients is None else str(sizing.clients),
            "workload": ",".join(sizing.chosen) or None,
            "budget": None if sizing.budget_s is None else f"{sizing.budget_s:g}s",
        }
        known = {name: text for name, text in texts.items() if text is not None}
        return {**self.recorded_options(sizing), **known}
