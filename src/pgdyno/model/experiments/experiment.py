"""An experiment and its results: design → rounds (started instances) → blocks → slices.

experiment   question + variants × workloads + design
  round      every variant's server started afresh, on byte-identical data     (the unit of inference)
    block    every variant measured close in time                             (replicates in a round)
      slice  one variant's load runs, all others are at rest                   (never a unit of inference)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pgdyno.host.awake import Awake
from pgdyno.model.experiments.failures import Failures
from pgdyno.model.experiments.likeness import Likeness
from pgdyno.model.experiments.step_record import StepRecord
from pgdyno.model.experiments.tpch import TpchFacts
from pgdyno.model.experiments.verdict import AtLoad, Verdict
from pgdyno.model.plans.plan import Plan
from pgdyno.model.plans.terms import Terms
from pgdyno.model.variants.durability import DurabilityReading
from pgdyno.model.variants.variant import Variant


@dataclass(frozen=True)
class LoadHosts:
    """Load hosts from a round on, which is counted from 0; by their names in hosts.toml."""

    first_round: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class HostLog:
    """An arm's transactions by the clock of a host, a line each.

    ``moves`` make that clock the server's, turn by turn: from when on, by the host's clock, and how many
    ns are added then. Nothing is added where there are none.
    """

    text: bytes
    moves: tuple[tuple[int, int], ...] = ()


STRETCH_ROUNDS = 3
"""In how many rounds that count the baseline, and the plan's server, have load alone for a stretch."""
DUET_BIAS = 0.005  # decision 68: sd of ln ratios of equal servers, beyond what rounds show
WRITING_SLICE_S = 0.5  # decision 28: the ends of turns take 1 % of the time instead of 10 %


class DesignKind(StrEnum):
    """How the arms are paired in time."""

    DUET = "duet"
    ALTERNATING = "alternating"


class Stopping(StrEnum):
    """When measuring ends. The last two look at the data and use anytime-valid intervals."""

    FIXED = "fixed"
    DECIDED = "decided"
    PRECISION = "precision"


class Phase(StrEnum):
    """The phase between checkpoints that figures of writing workloads cover."""

    AFTER_CHECKPOINT = "minute after a checkpoint"
    CYCLE = "whole checkpoint cycle"  # credits rarer checkpoints


CELL_OPTION = "cell"
"""Key of an experiment's options: the file with the host that has issued the load, as --cell names it."""
PHASES = {"minute": Phase.AFTER_CHECKPOINT, "cycle": Phase.CYCLE}
"""By the names that users write, on the command line and in experiment files."""


class ResetPolicy(StrEnum):
    """The treatment of the data between rounds."""

    KEEP = "keep"  # read-only workloads
    RESTORE = "restore"  # back to the snapshot before every round


@dataclass(frozen=True)
class VoidThresholds:
    """Above these a block is void. They never look at the measured result. All times are shares.

    What others take (the first two) is measured against twice its median where that is more: what disturbs
    throughout disturbs all arms alike.
    """

    steal_share: float = 0.10  # of the CPUs used, stolen by the hypervisor
    foreign_cpu_share: float = 0.10  # of the CPUs used, taken by other processes
    client_saturation_share: float = 0.97  # client CPU time / running time × its CPUs, when pinned apart
    schedule_lag_share: float = 0.20  # overshoot of all slices together against their planned length
    apart_share: float = 0.20  # of an arm's turns, begun too far apart by several load hosts
    void_block_share: float = 0.30  # above this the report says so first


@dataclass(frozen=True)
class Design:
    """Everything that decides how an experiment is run and analysed; stored with it.

    ``slice_s`` is the length of a turn, ``writing_slice_s`` that of workloads that change their data; None:
    as long as the others, which is how experiments of earlier versions were run. ``cycle_s`` is how long a
    block of such workloads lasts where ``phase`` is a whole checkpoint cycle. ``stretch_s`` is how long the
    baseline alone, and a plan's server alone, have load of such a workload after the blocks of some rounds;
    0: not at all. ``bias`` is the
    standard deviation, in ln, of a bias that the whole experiment has, and that its intervals contain.
    """

    kind: DesignKind = DesignKind.DUET
    rounds: int = 6
    blocks_per_round: int = 2
    block_s: float = 6.0
    slice_s: float = 0.05
    writing_slice_s: float | None = None
    head_s: float = 0.005  # discarded at each slice's beginning
    warmup_s: float = 2.0  # per arm and round, before the first block
    seed: int = 1
    level: float = 0.95
    equivalence_margin: float = 0.02
    power: float = 0.80
    stopping: Stopping = Stopping.FIXED
    precision: float | None = None  # relative half-width asked for, with Stopping.PRECISION
    is_isolated: bool = True  # server and client pinned to different CPUs
    clients: int = 4
    thresholds: VoidThresholds = field(default_factory=VoidThresholds)
    phase: Phase = Phase.AFTER_CHECKPOINT
    cycle_s: float | None = None
    stretch_s: float = 0.0
    bias: float = 0.0  # of experiments of earlier versions too, whose intervals contain none

    def with_bias(self) -> Design:
        """Return the design with the bias that a whole experiment of its kind has."""
        return replace(self, bias=DUET_BIAS if self.kind is DesignKind.DUET else 0.0)

    def with_writing(self) -> Design:
        """Return the design of an experiment in which data are changed, with the turns for that."""
        if self.kind is not DesignKind.DUET or self.writing_slice_s is not None:
            return self
        return replace(self, writing_slice_s=max(self.slice_s, WRITING_SLICE_S))

    def for_writing(self) -> Design:
        """Return the design as it is for a workload that changes its data."""
        slice_s = self.slice_s if self.writing_slice_s is None else self.writing_slice_s
        if self.cycle_s is None:
            return replace(self, slice_s=slice_s)
        is_trial = self.kind is DesignKind.ALTERNATING
        return replace(self, block_s=self.cycle_s, slice_s=self.cycle_s if is_trial else slice_s)


@dataclass(frozen=True)
class Slice:
    """One turn of one arm. ``arm`` indexes the experiment's variants; times are wall-clock ns.

    With load from other hosts a turn begins, by the server's clock, when they could begin it at the earliest.
    ``server_cpu_ns`` is the CPU time that each arm's server used in the counted part of this slice, whether
    it was its turn or not; with load from another host, the part's share by time of what it used from before
    the turn until all rested again. ``drained_ns`` is when the last transaction that was under way at its end
    had ended; None where a generator was frozen instead, or nobody recorded it. ``steal_share`` and
    ``foreign_cpu_share`` are what the hypervisor and other processes took of the CPUs since the
    last slice that has them; None within such a window. ``apart_ns`` is how far apart several load hosts have
    begun the turn at most; None where one host issued the load.

    Once the round's logs have been read: ``completed`` counts the transactions that ended in the counted
    part, ``latencies`` is the histogram of those that the block's latencies are of, in us, as text of
    ``measure/blocks/histogram.py``. None: nobody recorded them, or the workload counts executions.
    """

    arm: int
    start_ns: int
    end_ns: int
    server_cpu_ns: tuple[int, ...]
    drained_ns: int | None = None
    steal_share: float | None = None
    foreign_cpu_share: float | None = None
    completed: int | None = None
    latencies: str | None = None
    apart_ns: int | None = None


@dataclass(frozen=True)
class ArmBlock:
    """One arm in one block: its counts over its own running time, and every metric."""

    variant: str
    transactions: int
    running_s: float
    values: Mapping[str, float]  # by metric name, see model/experiments/metric.py
    step: StepRecord | None = None  # in full, where the workload is a step of a longer one
    void: str | None = None  # why it does not count although others do: it had a trial of its own
    audit: Mapping[str, float] = field(default_factory=dict)  # of that trial; else the block has it
    failures: tuple[Failures, ...] = ()  # in the same time as ``transactions``, which have none of them


@dataclass(frozen=True)
class Block:
    """All arms, close in time. ``void`` is the reason why it does not count, else None.

    ``started_ns`` is by the clock of the server's host. ``left_out`` are the slices, counted from 0, that do
    not count although the block does.
    """

    workload: str
    round: int
    index: int
    started_ns: int
    arms: tuple[ArmBlock, ...]
    void: str | None = None
    audit: Mapping[str, float] = field(default_factory=dict)  # steal_share, client_saturation_share, …
    left_out: tuple[int, ...] = ()

    def void_for(self, *variants: str) -> str | None:
        """Return why these arms do not count here: the block as a whole does not, or the trial of one."""
        return self.void or next(iter(self._void_arms(variants)), None)

    @property
    def void_reasons(self) -> tuple[str, ...]:
        """Why it does not count, or which of its arms do not and why."""
        return (self.void,) if self.void else tuple(self._void_arms([arm.variant for arm in self.arms]))

    def _void_arms(self, variants: Collection[str]) -> Iterator[str]:
        return (f"{arm.variant}: {arm.void}" for arm in self.arms if arm.void and arm.variant in variants)


@dataclass(frozen=True)
class NoiseFloor:
    """The A/A spread between two identical arms on this host, per workload and metric."""

    workload: str
    metric: str
    ratio: float
    interval: tuple[float, float]
    sd_between_rounds: float
    sd_within_rounds: float


@dataclass(frozen=True)
class SettingDifference:
    """One setting of a variant: its requested value, and the server's effective one.

    ``requested`` None: another variant sets it, this one leaves it as it is.
    """

    variant: str
    name: str
    requested: str | None
    effective: str


@dataclass(frozen=True)
class Cell:
    """The place of a workload in a grid: its load, its amount of data, its level.

    The level is the number of parallel workers where that is varied, else of clients. ``executions`` is how
    often a transaction executes in a loop what its rate counts.
    """

    load: str  # the bundled workload that it is, at another size
    database_bytes: int
    clients: int
    workers: int | None = None
    executions: int = 1

    @property
    def level(self) -> int:
        """The value of the varied number."""
        return self.clients if self.workers is None else self.workers

    @property
    def unit(self) -> str:
        """The unit of a level."""
        return "clients" if self.workers is None else "workers"

    @property
    def operation(self) -> str | None:
        """The unit of the rate, if not transactions."""
        return None if self.executions == 1 else "executions"


@dataclass(frozen=True)
class Part:
    """One of several chained experiments, each beginning where the previous one ends.

    ``variants`` in their order, the first is the baseline; every verdict is on one of them against the one
    before it.
    """

    experiment: str  # its id
    kind: DesignKind
    rounds: int
    variants: tuple[str, ...]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Experiment:
    """A finished or interrupted experiment, complete enough to be reported, exported and compared.

    ``installation`` runs the variants that name no server: "embedded", or the directory of its programs.
    ``host`` and ``server`` are the facts as JSON documents, so that a bundle from another version of
    pgdyno stays readable. ``notes`` are sentences for the reader: not durable, resets, left-out settings.
    One that is put together from ``parts`` has no blocks of its own; its verdicts are on their product.
    """

    id: str
    name: str
    question: str
    created: str  # ISO 8601, UTC
    pgdyno_version: str
    design: Design
    variants: tuple[Variant, ...]
    baseline: str
    workloads: tuple[str, ...]
    reset_policies: Mapping[str, ResetPolicy]
    blocks: tuple[Block, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    noise_floor: tuple[NoiseFloor, ...] = ()
    settings: tuple[SettingDifference, ...] = ()
    plan: Plan | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    is_complete: bool = False
    installation: str | None = None
    scales: Mapping[str, int] = field(default_factory=dict)  # size of each workload's data set
    generators: Mapping[str, str] = field(default_factory=dict)  # who issued each workload
    operations: Mapping[str, str] = field(default_factory=dict)  # what workloads count, if not transactions
    options: Mapping[str, str] = field(default_factory=dict)  # of a study with steps: preset, rows, mode, …
    factors: tuple[str, ...] = ()  # what that study varied; the values are the variants'
    cells: Mapping[str, Cell] = field(default_factory=dict)  # of workloads that span a grid
    parts: tuple[Part, ...] = ()
    tpch: TpchFacts | None = None  # of a workload like TPC-H
    emulated_machine: str = ""  # what the server was built for, where an emulator ran it: its speed is none
    durability: tuple[DurabilityReading, ...] = ()  # every different one, in the order of time
    awake: Awake | None = None  # how CPUs idled; None: not recorded, by an older pgdyno
    burstable_type: str = ""  # the machine's type, where it is known to have CPU credits
    terms: Terms | None = None  # by which its plan is decided; None: no plan is asked about
    allowed_files: tuple[str, ...] = ()  # of the kernel: those that variants set and no lever does
    at_load: tuple[AtLoad, ...] = ()  # latencies at a fixed rate, measured after this experiment
    likenesses: Mapping[str, Likeness] = field(default_factory=dict)  # of captured workloads, by name
    load_hosts: tuple[LoadHosts, ...] = ()  # in the order of time; none: the load came from the same host

    def operation(self, workload: str) -> str | None:
        """Return the unit of a workload's rate, if not transactions."""
        cell = self.cells.get(workload)
        return self.operations.get(workload) or (cell.operation if cell else None)
