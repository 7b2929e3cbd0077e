"""Run a study: rounds until done, results stored as they come, verdicts at the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias

import numpy as np

from pgdyno import __version__
from pgdyno.app.arenas.arena import Arena
from pgdyno.app.measuring.adaptive import next_cells
from pgdyno.app.measuring.evidence import Evidence, Facts
from pgdyno.app.measuring.likeness_reading import likened
from pgdyno.app.measuring.load_hosts.regained import NOT_NEEDED, AfterLoss, Regained, end_without_host
from pgdyno.app.measuring.recovery import recover
from pgdyno.app.measuring.resumption import require_same
from pgdyno.app.measuring.rounds import Running, run_round
from pgdyno.app.measuring.sampled_answers import answers_compared
from pgdyno.app.measuring.tpch.validation import tpch_facts, validated
from pgdyno.experiments.blocks.disturbance import judge_again, with_disturbance_notes
from pgdyno.experiments.blocks.wal_ahead import wal_notes
from pgdyno.experiments.decisions.load_hosts_notes import loss_note, with_load_hosts
from pgdyno.experiments.decisions.notes import (
    durability_marks,
    hopeless_note,
    method_notes,
    noise_note,
    seat_note,
    step_labels,
)
from pgdyno.experiments.decisions.round_plan import RoundPlan
from pgdyno.experiments.decisions.stopping import Futile, counts_nothing, is_finished
from pgdyno.experiments.design.phase import with_phase
from pgdyno.experiments.design.workload_order import in_random_order, workloads_by_server
from pgdyno.experiments.verdicts.analysis import analyse
from pgdyno.experiments.verdicts.durability import is_hopeless, withhold
from pgdyno.meters import load as load_meters
from pgdyno.model.errors import InterruptedByUserError, PgdynoError
from pgdyno.model.experiments.awake import Awake
from pgdyno.model.experiments.experiment import Block, Experiment, NoiseFloor, Stopping
from pgdyno.model.experiments.load_hosts import LoadHosts
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.verdict import Verdict
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.plans.plan import Plan
from pgdyno.model.plans.terms import Terms
from pgdyno.model.ports import Progress
from pgdyno.store.experiments import ExperimentStore

_LISTED_NAMES = 3
_NOT_IN_A_FILE_NAME = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Context:
    """Additional facts that an experiment records for its reader."""

    host: Facts = field(default_factory=dict)
    server: Facts = field(default_factory=dict)
    plan: Plan | None = None
    noise_floor: tuple[NoiseFloor, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)  # of the study, as they were asked for
    factors: tuple[str, ...] = ()
    emulated_machine: str = ""  # as in ``Experiment``
    awake: Awake | None = None
    burstable_type: str = ""
    terms: Terms | None = None  # by which a plan is decided
    allowed_files: tuple[str, ...] = ()  # as in ``Experiment``
    load_hosts: tuple[LoadHosts, ...] = ()  # as in ``Experiment``


RunRound: TypeAlias = Callable[[Running, int, Sequence[Workload]], list[Block]]
"""Measures one round, given its number and the workloads in their order."""


@dataclass
class ExperimentRun:
    """One experiment on its way: ``run`` returns it finished, ``experiment`` is its state at any time."""

    arena: Arena
    store: ExperimentStore
    progress: Progress
    workloads: Mapping[str, Workload]
    clock: Callable[[], float] = time.monotonic
    is_resumable: bool = True  # whether the command that measures takes up what was interrupted
    is_futile: Futile | None = None  # asked once, after half of the rounds
    run_round: RunRound = run_round
    after_loss: AfterLoss = end_without_host

    def run(
        self,
        study: Study,
        *,
        budget_s: float | None = None,
        context: Context | None = None,
        resume: str | None = None,
    ) -> Experiment:
        """Run a study and return the experiment with its verdicts.

        ``budget_s`` replaces the design's number of rounds by what fits, fixed after the first round from
        its duration alone. ``resume`` continues an interrupted experiment.
        Raises: InterruptedByUserError after storing what there is; errors of servers and generators.
        """
        started = self.clock()
        study = self._with_turns(study)
        memory_notes = self._memory_notes(study)
        self._prepare(study)
        asked = self._new(study, context or Context(), memory_notes)
        if resume:
            experiment = self._resumed(study, resume, asked, memory_notes)
            study = replace(study, design=experiment.design)
        else:
            experiment = asked
            self.store.save(experiment)
        try:
            with self.arena.prepared_for(study) as arena:
                experiment = self._rounds(arena, study, experiment, started, budget_s)
        except KeyboardInterrupt as interrupt:
            experiment = self._conclude(study, self.store.load(experiment.id), is_complete=False)
            raise self._interrupted(experiment) from interrupt
        except PgdynoError as error:
            if kept := len(self.store.load(experiment.id).blocks):
                way = (
                    f"continue with --resume {experiment.id}"
                    if self.is_resumable
                    else f"pgdyno report {experiment.id}"
                )
                kept_hint = f"the {kept} blocks of earlier rounds are kept: {way}"
                error.hint = "; ".join(filter(None, (error.hint, kept_hint)))
            raise
        return experiment

    def _with_turns(self, study: Study) -> Study:
        """Return the study with longer turns for the workloads that write, if it has any."""
        if all(self.workloads[name].is_read_only for name in study.workloads):
            return study
        design = with_phase(study.design.with_writing(), study.variants)
        if design.cycle_s is not None:
            self.progress.step(f"blocks of writing workloads last {design.cycle_s / 60:g} min each")
        return replace(study, design=design)

    def _interrupted(self, experiment: Experiment) -> InterruptedByUserError:
        """Return the error that names the stored results and the ways to continue."""
        resume = (f"continue with --resume {experiment.id}",) if self.is_resumable else ()
        count = len(experiment.blocks)
        if not count:
            return InterruptedByUserError("interrupted; no round has ended yet", hint="".join(resume) or None)
        kept = "block measured so far is" if count == 1 else f"{count} blocks measured so far are"
        hint = ", or ".join([f"pgdyno report {experiment.id}", *resume])
        return InterruptedByUserError(f"interrupted; the {kept} kept", hint=hint)

    def _memory_notes(self, study: Study) -> tuple[str, ...]:
        """Say which servers' memory is limited, and how. Raises: PgdynoError if it cannot be."""
        limits = [self.workloads[name].server_memory_bytes for name in study.workloads]
        return tuple(self.arena.memory_note(limit) for limit in dict.fromkeys(limits) if limit is not None)

    def _new(self, study: Study, context: Context, memory_notes: tuple[str, ...]) -> Experiment:
        now = datetime.now(UTC)
        workloads = [self.workloads[name] for name in study.workloads]
        return Experiment(
            id=experiment_id(now, study.name),
            name=study.name,
            question=study.question,
            created=now.isoformat(timespec="seconds"),
            pgdyno_version=__version__,
            design=study.design,
            variants=study.variants,
            baseline=study.baseline,
            workloads=study.workloads,
            reset_policies={workload.name: workload.reset for workload in workloads},
            scales={workload.name: workload.data_set.scale for workload in workloads},
            generators={workload.name: workload.generator for workload in workloads},
            operations={workload.name: workload.step.operations for workload in workloads if workload.step},
            cells={workload.name: workload.cell for workload in workloads if workload.cell},
            noise_floor=context.noise_floor,
            plan=context.plan,
            host=context.host,
            server=context.server,
            options=context.options,
            factors=context.factors,
            notes=(
                *durability_marks(study),
                *step_labels(workloads),
                *study.notes,
                *memory_notes,
                *self.arena.build_notes(study.variants),
                *method_notes(workloads, study.design),
            ),
            installation=self.arena.installation_name,
            tpch=tpch_facts(workloads),
            emulated_machine=context.emulated_machine,
            awake=context.awake,
            burstable_type=context.burstable_type,
            terms=context.terms,
            allowed_files=context.allowed_files,
            load_hosts=context.load_hosts,
        )

    def _resumed(
        self, study: Study, experiment_id: str, asked: Experiment, memory_notes: tuple[str, ...]
    ) -> Experiment:
        """Return the stored experiment, with the recovered part of its interrupted round.

        Raises: UsageError if it is another experiment than the one asked for now.
        """
        stored = self.store.load(experiment_id)
        labels = {*step_labels([self.workloads[name] for name in study.workloads]), *memory_notes}
        require_same(stored, asked, labels, is_imported=experiment_id in self.store.origins())
        recovered = recover(stored, self.store, self.arena, self.workloads)
        self.store.add_blocks(experiment_id, recovered)
        self.store.forget_slices(experiment_id, self.store.unread(experiment_id))
        self.arena.loads.forget(experiment_id)
        found = self.store.load(experiment_id)
        if asked.load_hosts:
            found = with_load_hosts(found, asked.load_hosts[-1].names, _rounds_done(found))
        return found

    def _prepare(self, study: Study) -> None:
        """Let servers judge every variant's settings, then load data sets, before anything is measured."""
        self.arena.check(study.variants)
        for name in study.workloads:
            for variant in study.variants:
                self.arena.load(variant, self.workloads[name].data_set)

    def _rounds(
        self, arena: Arena, study: Study, experiment: Experiment, started: float, budget_s: float | None
    ) -> Experiment:
        evidence = Evidence(study, experiment.host, experiment.server, experiment.durability)
        running = self._running(arena, study, experiment, evidence)
        workloads = [self.workloads[name] for name in study.workloads]
        experiment = validated(experiment, arena, workloads, self.progress)
        experiment = likened(experiment, arena, workloads, self.progress)
        experiment = answers_compared(experiment, arena, workloads, self.progress)
        self.store.save(experiment)
        plan = RoundPlan.of(study, budget_s, _rounds_done(experiment))
        while plan.left:
            round_started = self.clock()
            names = _names(study, experiment, plan.left)
            for group in workloads_by_server([self.workloads[name] for name in names]):
                self.progress.step(_label(plan.done, plan.total, group))
                shuffled = in_random_order(group, running.random)
                self.store.add_blocks(experiment.id, self.run_round(running, plan.done, shuffled))
                self.arena.loads.forget(experiment.id)
            experiment = evidence.added_to(self.store.load(experiment.id))
            self.store.save(experiment)
            experiment = judge_again(experiment)
            if running.lost:
                plan = plan.after_loss(experiment.blocks)
            else:
                round_s, elapsed_s = self.clock() - round_started, self.clock() - started
                plan = plan.after(round_s, elapsed_s, experiment.blocks)
                self.progress.advance(elapsed_s, elapsed_s + plan.left * round_s)
            is_over = plan.left == 0 or self._is_over(study, experiment, is_half=plan.is_half)
            if running.lost:
                running = self._after_loss(experiment.id, running, plan.done, is_over=is_over)
            if is_over:
                break
        measured = self.store.load(experiment.id)
        told = replace(measured, notes=(*measured.notes, *running.plans.notes()))
        return self._conclude(study, told, is_complete=True)

    def _after_loss(self, experiment_id: str, running: Running, done: int, *, is_over: bool) -> Running:
        """Store the loss of a load host; return the context of further rounds, with those that there are."""
        lost = running.lost[0]
        why = (lost.detail or lost.message).splitlines()[-1]
        self.progress.step(f"round {done} does not count: load host {lost.host} was lost ({why})")
        regained = (
            Regained(running.arena, (), NOT_NEEDED) if is_over else self.after_loss(running.arena, lost)
        )
        stored = self.store.load_head(experiment_id)
        told = replace(stored, notes=(*stored.notes, loss_note(lost.host, done, regained.how)))
        self.store.save(with_load_hosts(told, regained.hosts, done))
        return replace(running, arena=regained.arena, lost=[])

    def _running(self, arena: Arena, study: Study, experiment: Experiment, evidence: Evidence) -> Running:
        """Return the context of a round."""
        return Running(
            experiment_id=experiment.id,
            arena=arena,
            variants=study.variants,
            design=study.design,
            meters=load_meters(),
            random=np.random.default_rng((study.design.seed, len(experiment.blocks))),
            keep_slice=partial(self.store.add_slice, experiment.id),
            keep_counts=partial(self.store.add_counts, experiment.id),
            look_at=evidence.look_at,
            read_durability=evidence.read_durability,
            announce=self.progress.step,
            changed=frozenset(
                workload.data_set.key
                for workload in (self.workloads[name] for name in study.workloads)
                if not workload.is_read_only
            ),
        )

    def _is_over(self, study: Study, experiment: Experiment, *, is_half: bool) -> bool:
        """Whether the experiment ends before its planned rounds are done."""
        if counts_nothing(experiment.blocks) or is_hopeless(experiment):
            return True
        if study.design.stopping is not Stopping.FIXED:
            verdicts = _verdicts(study, experiment, self.workloads)
            if is_finished(verdicts, study.design, experiment.blocks):
                return True
        return self.is_futile is not None and is_half and self.is_futile(experiment)

    def _conclude(self, study: Study, measured: Experiment, *, is_complete: bool) -> Experiment:
        experiment = with_disturbance_notes(judge_again(measured))
        design = replace(experiment.design, rounds=max(1, _rounds_done(experiment)))
        concluded = replace(
            _without_unmeasured(experiment) if is_complete else experiment,
            design=design if is_complete else experiment.design,
            verdicts=_verdicts(study, experiment, self.workloads),
            notes=(
                *experiment.notes,
                *noise_note(experiment),
                *seat_note(experiment),
                *hopeless_note(experiment),
                *(wal_notes(experiment) if is_complete else ()),
            ),
            is_complete=is_complete,
        )
        self.store.add_blocks(concluded.id, concluded.blocks)
        self.store.save(concluded)
        return concluded


def _names(study: Study, experiment: Experiment, rounds_left: int) -> tuple[str, ...]:
    """Return the workloads of the next round."""
    chosen = next_cells(experiment, rounds_left) if study.is_adaptive else ()
    return chosen or study.workloads  # none: several variants are compared, and all cells belong to that


def experiment_id(now: datetime, name: str) -> str:
    """Return the id of an experiment of that name that starts now."""
    return f"{now:%Y%m%d-%H%M%S}-{_NOT_IN_A_FILE_NAME.sub('-', name)}"


def _without_unmeasured(experiment: Experiment) -> Experiment:
    """Return the experiment without cells that no round took, as it did not need them to find a knee."""
    measured = {block.workload for block in experiment.blocks}
    names = tuple(name for name in experiment.workloads if name in measured or name not in experiment.cells)
    cells = {name: cell for name, cell in experiment.cells.items() if name in measured}
    return replace(experiment, workloads=names, cells=cells)


def _verdicts(study: Study, experiment: Experiment, workloads: Mapping[str, Workload]) -> tuple[Verdict, ...]:
    """Return the verdicts; none on a workload whose rate was given: more of it could not be done."""
    verdicts = analyse(
        experiment.blocks,
        workloads=[name for name in study.workloads if workloads[name].rate_tps is None],
        variants=[variant.name for variant in study.variants],
        baseline=study.baseline,
        design=study.design,
    )
    return withhold(verdicts, experiment)


def _rounds_done(experiment: Experiment) -> int:
    return max((block.round + 1 for block in experiment.blocks), default=0)


def _label(done: int, planned: int, workloads: Sequence[Workload]) -> str:
    names = [workload.name for workload in workloads]
    listed = ", ".join(names) if len(names) <= _LISTED_NAMES else f"{names[0]} … {names[-1]}"
    return f"round {done + 1} of {planned}: {listed}"
