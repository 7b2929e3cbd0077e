"""An experiment and its results: design → rounds (started instances) → blocks → slices.

experiment   question + variants × workloads + design
  round      every variant's server newly started, on byte-identical data      (the unit of inference)
    block    every variant measured close in time                             (replicates in a round)
      slice  one variant's load runs, all others are idle                      (never a unit of inference)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pgdyno.host.cpu_idling import Awake
from pgdyno.model.experiments.failures import Failures
from pgdyno.model.experiments.likeness import Likeness
from pgdyno.model.experiments.statements import StatementCount, UsedPlans
from pgdyno.model.experiments.step_record import StepRecord, TpchFacts
from pgdyno.model.experiments.verdict import AtLoad, Verdict
from pgdyno.model.experiments.workload import USUAL_CLIENTS, Cell, ResetPolicy
from pgdyno.model.plans.plan import Plan, Terms
from pgdyno.model.variants.durability import DurabilityReading
from pgdyno.model.variants.schema_sql import SchemaChange
from pgdyno.model.variants.variant import Variant


@dataclass(frozen=True)
class LoadHosts:
    """The load hosts from a round on (counted from 0), by their names in hosts.toml."""

    first_round: int
    names: tuple[str, ...]


STRETCH_ROUNDS = 3
"""Number of valid rounds in which the baseline alone and the plan's server alone have load for a stretch."""
DUET_BIAS = 0.005  # decision 68: sd of ln ratios of equal servers, beyond what rounds show
WRITING_SLICE_S = 0.5  # decision 28: draining at the end of turns takes 1 % of the time instead of 10 %


class DesignKind(StrEnum):
    """How the arms are paired in time."""

    DUET = "duet"
    ALTERNATING = "alternating"


class Stopping(StrEnum):
    """When measuring ends. The last two depend on the data and use anytime-valid intervals."""

    FIXED = "fixed"
    DECIDED = "decided"
    PRECISION = "precision"


class Phase(StrEnum):
    """The part of a checkpoint cycle that figures of writing workloads cover."""

    AFTER_CHECKPOINT = "minute after a checkpoint"
    CYCLE = "whole checkpoint cycle"  # credits rarer checkpoints


CELL_OPTION = "cell"
"""Key of an experiment's options: the value of --cell, the file with the load hosts."""
PHASES = {"minute": Phase.AFTER_CHECKPOINT, "cycle": Phase.CYCLE}
"""By their names on the command line and in experiment files."""


@dataclass(frozen=True)
class VoidThresholds:
    """A block above any of these is void. They never depend on the measured result. All times are shares.

    The first two, CPU time taken by others, are compared with twice their median if that is larger: a
    constant disturbance affects all arms alike.
    """

    steal_share: float = 0.10  # of the CPUs used, stolen by the hypervisor
    foreign_cpu_share: float = 0.10  # of the CPUs used, taken by other processes
    client_saturation_share: float = 0.97  # client CPU time / running time × its CPUs, when pinned apart
    schedule_lag_share: float = 0.20  # overshoot of all slices together against their planned length
    apart_share: float = 0.20  # of an arm's turns that several load hosts began too far apart
    void_block_share: float = 0.30  # above this the report begins with a warning


@dataclass(frozen=True)
class Design:
    """All parameters by which an experiment is run and analysed; stored with it.

    ``slice_s`` is the length of a turn, ``writing_slice_s`` that of workloads that change their data; None:
    the same, as in experiments of earlier versions. ``cycle_s`` is the length of a block of such workloads if
    ``phase`` is a whole checkpoint cycle. ``stretch_s`` is the time for which the baseline alone, and a
    plan's server alone, have load of such a workload after the blocks of some rounds; 0: not at all.
    ``bias`` is the standard deviation, in ln, of a bias of the whole experiment; intervals include it.
    """

    kind: DesignKind = DesignKind.DUET
    rounds: int = 6
    blocks_per_round: int = 2
    block_s: float = 6.0
    slice_s: float = 0.05
    writing_slice_s: float | None = None
    head_s: float = 0.005  # discarded at the beginning of each slice
    warmup_s: float = 2.0  # per arm and round, before the first block
    seed: int = 1
    level: float = 0.95
    equivalence_margin: float = 0.02
    power: float = 0.80
    stopping: Stopping = Stopping.FIXED
    precision: float | None = None  # requested relative half-width, with Stopping.PRECISION
    is_isolated: bool = True  # server and client pinned to different CPUs
    clients: int = USUAL_CLIENTS
    thresholds: VoidThresholds = field(default_factory=VoidThresholds)
    phase: Phase = Phase.AFTER_CHECKPOINT
    cycle_s: float | None = None
    stretch_s: float = 0.0
    bias: float = 0.0  # also in experiments of earlier versions

    def with_bias(self) -> Design:
        """Return the design with the known bias of experiments of its kind."""
        return replace(self, bias=DUET_BIAS if self.kind is DesignKind.DUET else 0.0)

    def with_writing(self) -> Design:
        """Return the design with the turns for workloads that change their data."""
        if self.kind is not DesignKind.DUET or self.writing_slice_s is not None:
            return self
        return replace(self, writing_slice_s=max(self.slice_s, WRITING_SLICE_S))

    def for_writing(self) -> Design:
        """Return the design as it applies to a workload that changes its data."""
        slice_s = self.slice_s if self.writing_slice_s is None else self.writing_slice_s
        if self.cycle_s is None:
            return replace(self, slice_s=slice_s)
        is_trial = self.kind is DesignKind.ALTERNATING
        return replace(self, block_s=self.cycle_s, slice_s=self.cycle_s if is_trial else slice_s)


@dataclass(frozen=True)
class ArmBlock:
    """One arm in one block: its counts over its own running time, and every metric."""

    variant: str
    transactions: int
    running_s: float
    values: Mapping[str, float]  # by metric name, see model/experiments/metric.py
    step: StepRecord | None = None  # in full, if the workload is a step of a longer one
    void: str | None = None  # why this arm alone is void, if it was measured in a separate trial
    audit: Mapping[str, float] = field(default_factory=dict)  # of that trial; otherwise the block has it
    failures: tuple[Failures, ...] = ()  # in the same time as ``transactions``, which do not include them
    statements: Mapping[str, StatementCount] = field(default_factory=dict)  # by name; also of drains


@dataclass(frozen=True)
class Block:
    """All arms, measured close in time. ``void`` is the reason why it does not count; None: it counts.

    ``started_ns`` is by the clock of the server's host. ``left_out`` are the excluded slices (counted from 0)
    of a block that counts.
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
        """Return why these arms do not count here: the block is void, or the trial of one arm is."""
        return self.void or next(iter(self._void_arms(variants)), None)

    @property
    def void_reasons(self) -> tuple[str, ...]:
        """Why the block is void; else its void arms, with reasons."""
        return (self.void,) if self.void else tuple(self._void_arms([arm.variant for arm in self.arms]))

    def _void_arms(self, variants: Collection[str]) -> Iterator[str]:
        return (f"{arm.variant}: {arm.void}" for arm in self.arms if arm.void and arm.variant in variants)


@dataclass(frozen=True)
class NoiseFloor:
    """The A/A difference between two identical arms on this host, per workload and metric."""

    workload: str
    metric: str
    ratio: float
    interval: tuple[float, float]
    sd_between_rounds: float
    sd_within_rounds: float


@dataclass(frozen=True)
class SettingDifference:
    """One setting of a variant: its requested value, and the server's effective one.

    ``requested`` None: only other variants set it.
    """

    variant: str
    name: str
    requested: str | None
    effective: str


@dataclass(frozen=True)
class Part:
    """One of several chained experiments: each begins with the last variant of the previous one.

    ``variants`` are in order, the baseline first; every verdict compares one of them with its predecessor.
    """

    experiment: str  # its id
    kind: DesignKind
    rounds: int
    variants: tuple[str, ...]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Experiment:
    """A finished or interrupted experiment, complete enough to be reported, exported and compared.

    ``installation`` runs the variants without a server: "embedded", or the directory of its programs.
    ``host`` and ``server`` are facts as JSON documents, which keeps bundles from other versions of pgdyno
    readable. ``notes`` are sentences for the report: not durable, resets, left-out settings.
    An experiment composed of ``parts`` has no blocks itself; its verdicts are on the product of the parts.
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
    generators: Mapping[str, str] = field(default_factory=dict)  # load generator of each workload
    operations: Mapping[str, str] = field(default_factory=dict)  # units of the rates, if not transactions
    options: Mapping[str, str] = field(default_factory=dict)  # of a study with steps: preset, rows, mode, …
    factors: tuple[str, ...] = ()  # the factors varied by that study; variants have the values
    cells: Mapping[str, Cell] = field(default_factory=dict)  # of workloads that span a grid
    parts: tuple[Part, ...] = ()
    tpch: TpchFacts | None = None  # of a workload like TPC-H
    emulated_machine: str = ""  # the server's architecture if an emulator ran it: its speed is meaningless
    durability: tuple[DurabilityReading, ...] = ()  # distinct readings, in chronological order
    awake: Awake | None = None  # how CPUs idled; None: not recorded by older versions
    burstable_type: str = ""  # the instance type, if it is known to have CPU credits
    terms: Terms | None = None  # the requirements on its plan; None: it does not decide on a plan
    allowed_files: tuple[str, ...] = ()  # kernel files that variants set and no lever does
    at_load: tuple[AtLoad, ...] = ()  # latencies at a fixed rate, measured after this experiment
    likenesses: Mapping[str, Likeness] = field(default_factory=dict)  # of captured workloads, by name
    plans: tuple[UsedPlans, ...] = ()  # of statements, before the load of the first round
    load_hosts: tuple[LoadHosts, ...] = ()  # in chronological order; empty: load from the server's host
    schema_changes: tuple[SchemaChange, ...] = ()  # of all variants, if any of them has SQL

    def operation(self, workload: str) -> str | None:
        """Return the unit of a workload's rate, if not transactions."""
        cell = self.cells.get(workload)
        return self.operations.get(workload) or (cell.operation if cell else None)
