"""Run a study: rounds until done, results stored as they arrive, verdicts at the end.

The cells of a grid are selected before each round, to find knees in few trials. The first five rounds measure
widely spaced levels; later rounds measure the levels still in question and those between them
(``stats/curves/knee.py``). Once a curve's knee is known, the remaining rounds measure the knee, its
neighbours and the best level: these rounds had no part in the selection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TypeAlias

import numpy as np

from pgdyno.base.errors import InterruptedByUserError, PgdynoError, SchemaChangeError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.arena import NOT_NEEDED, AfterLoss, Arena, Passes, Regained, end_without_host
from pgdyno.measure.blocks.disturbance import judge_again
from pgdyno.measure.decisions.notes import loss_note, step_labels, with_load_hosts
from pgdyno.measure.decisions.round_plan import RoundPlan
from pgdyno.measure.decisions.stopping import Look, counts_nothing, is_finished
from pgdyno.measure.design.phase import with_phase
from pgdyno.measure.design.schedule import in_random_order, stretches_s, workloads_by_server
from pgdyno.measure.evidence import Evidence
from pgdyno.measure.likeness import answers_compared, likened
from pgdyno.measure.meters import load as load_meters
from pgdyno.measure.records.conclusion import concluded, rounds_done, verdicts_on
from pgdyno.measure.records.new_experiment import Context, new_experiment
from pgdyno.measure.recovery import recover
from pgdyno.measure.rounds import Running, run_round
from pgdyno.measure.statement_counting import counting, why_uncounted
from pgdyno.measure.verdicts.durability import is_hopeless
from pgdyno.measure.verdicts.scaling import MeasuredCurve, measured_curves
from pgdyno.model.experiments.experiment import CELL_OPTION, Block, Experiment, Stopping
from pgdyno.model.experiments.failures import FAILED_TRIAL
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.stats.curves.knee import ENOUGH, first_levels, next_levels
from pgdyno.stats.curves.scaling_law import observe
from pgdyno.store.experiments import ExperimentStore

_LISTED_NAMES = 3
RunRound: TypeAlias = Callable[[Running, int, Sequence[Workload]], list[Block]]
"""Measures one round, given its index and the workloads in order."""


@dataclass
class ExperimentRun:
    """One experiment in progress; ``run`` returns it finished."""

    arena: Arena
    store: ExperimentStore
    progress: Progress
    workloads: Mapping[str, Workload]
    clock: Callable[[], float] = time.monotonic
    is_resumable: bool = True  # whether the command can resume an interrupted experiment
    look: Look | None = None  # called once, after the fewest rounds for a verdict
    run_round: RunRound = run_round
    after_loss: AfterLoss = end_without_host
    passes: Passes | None = None  # measures the steps of a benchmark
    accepts_unlike: bool = False  # measure captured workloads although their replay is unlike the original

    def run(
        self,
        study: Study,
        *,
        budget_s: float | None = None,
        context: Context | None = None,
        resume: str | None = None,
    ) -> Experiment:
        """Run a study and return the experiment with its verdicts.

        With ``budget_s``, the number of rounds is as many as fit, not the design's; it is fixed after the
        first round from that round's duration alone. ``resume`` continues an interrupted experiment.
        Raises: InterruptedByUserError after storing the results so far; errors of servers and generators.
        """
        started = self.clock()
        study = self._with_turns(study)
        study = replace(study, design=study.design.with_bias())
        memory_notes = self._memory_notes(study)
        study = self._prepare(study)
        workloads = [self.workloads[name] for name in study.workloads]
        requested = new_experiment(
            study,
            workloads,
            context or Context(),
            self.arena.installation_name,
            (*memory_notes, *self.arena.build_notes(study.variants), *self._uncounted_note(study)),
        )
        changes = self.arena.schema_changes(study.variants, workloads)
        requested = replace(requested, schema_changes=changes)
        if resume:
            experiment = self._resumed(study, resume, requested, memory_notes)
            study = replace(study, design=experiment.design)
        else:
            experiment = requested
            self.store.save(experiment)
        try:
            with self.arena.prepared_for(self._counting(study)) as arena:
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
        """Return the study with longer turns for its write workloads, if it has any."""
        if all(self.workloads[name].is_read_only for name in study.workloads):
            return study
        design = with_phase(study.design.with_writing(), study.variants)
        if design.cycle_s is not None:
            self.progress.step(f"blocks of write workloads last {design.cycle_s / 60:g} min each")
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
        """Return a note on each memory limit of servers. Raises: PgdynoError if memory cannot be limited."""
        limits = [self.workloads[name].server_memory_bytes for name in study.workloads]
        return tuple(self.arena.memory_note(limit) for limit in dict.fromkeys(limits) if limit is not None)

    def _resumed(
        self, study: Study, experiment_id: str, requested: Experiment, memory_notes: tuple[str, ...]
    ) -> Experiment:
        """Return the stored experiment, with the recovered part of its interrupted round.

        Raises: UsageError if it differs from the experiment requested now.
        """
        stored = self.store.load(experiment_id)
        labels = {*step_labels([self.workloads[name] for name in study.workloads]), *memory_notes}
        require_same(stored, requested, labels, is_imported=experiment_id in self.store.origins())
        recovered = recover(stored, self.store, self.arena, self.workloads)
        self.store.add_blocks(experiment_id, recovered)
        self.store.forget_slices(experiment_id, self.store.unread(experiment_id))
        self.arena.loads.forget(experiment_id)
        found = self.store.load(experiment_id)
        if requested.load_hosts:
            found = with_load_hosts(found, requested.load_hosts[-1].names, rounds_done(found))
        return found

    def _prepare(self, study: Study) -> Study:
        """Before measuring, let servers validate every variant's settings, then load the data sets.

        Returns the study without variants with SQL that fails, and with a note on each.
        Raises: SchemaChangeError if there is nothing left to compare.
        """
        self.arena.check(study.variants)
        failed: dict[str, SchemaChangeError] = {}
        for name, variant in product(study.workloads, study.variants):
            if variant.name not in failed:
                try:
                    self.arena.load(variant, self.workloads[name].data_set)
                except SchemaChangeError as error:
                    failed[variant.name] = error
        kept = tuple(one for one in study.variants if one.name not in failed)
        if failed and (len(kept) < 2 or study.baseline in failed):
            raise next(iter(failed.values()))
        notes = [f"{name}{FAILED_TRIAL}{one.message}: {one.detail}" for name, one in failed.items()]
        return replace(study, variants=kept, notes=(*study.notes, *notes))

    def _rounds(
        self, arena: Arena, study: Study, experiment: Experiment, started: float, budget_s: float | None
    ) -> Experiment:
        evidence = Evidence(
            study, experiment.host, experiment.server, experiment.durability, experiment.plans
        )
        running = self._running(arena, study, experiment, evidence)
        workloads = [self.workloads[name] for name in study.workloads]
        if self.passes is not None:
            experiment = self.passes.checked(experiment, arena, workloads, self.progress)
        experiment = likened(experiment, arena, workloads, self.progress, accepts_unlike=self.accepts_unlike)
        experiment = answers_compared(experiment, arena, workloads, self.progress)
        self.store.save(experiment)
        alone_s = stretches_s(workloads, study.design)
        plan = RoundPlan.of(study, budget_s, rounds_done(experiment), stretches_s=alone_s)
        while plan.left:
            round_started = self.clock()
            names = _names(study, experiment, plan.left)
            for group in workloads_by_server([self.workloads[name] for name in names]):
                is_first = budget_s is not None and not plan.done
                self.progress.step(_label(plan.done, None if is_first else plan.total, group))
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
                self.progress.advance(elapsed_s, elapsed_s + plan.left_s(round_s))
            is_over = plan.left == 0 or self._is_over(study, experiment, is_look=plan.is_look)
            if running.lost:
                running = self._after_loss(experiment.id, running, plan.done, is_over=is_over)
            if is_over:
                break
        measured = self.store.load(experiment.id)
        noted = replace(measured, notes=(*measured.notes, *running.plans.notes()))
        return self._conclude(study, noted, is_complete=True)

    def _after_loss(self, experiment_id: str, running: Running, done: int, *, is_over: bool) -> Running:
        """Store the loss of a load host; return the context for further rounds, with the hosts available."""
        lost = running.lost[0]
        why = (lost.detail or lost.message).splitlines()[-1]
        self.progress.step(f"round {done} does not count: load host {lost.host} was lost ({why})")
        regained = (
            Regained(running.arena, (), NOT_NEEDED) if is_over else self.after_loss(running.arena, lost)
        )
        stored = self.store.load_head(experiment_id)
        noted = replace(stored, notes=(*stored.notes, loss_note(lost.host, done, regained.how)))
        self.store.save(with_load_hosts(noted, regained.hosts, done))
        return replace(running, arena=regained.arena, lost=[])

    def _running(self, arena: Arena, study: Study, experiment: Experiment, evidence: Evidence) -> Running:
        counted = self._counting(study)
        return Running(
            experiment_id=experiment.id,
            arena=arena,
            variants=counted.variants,
            design=study.design,
            meters=load_meters(),
            random=np.random.default_rng((study.design.seed, len(experiment.blocks))),
            keep_slice=partial(self.store.add_slice, experiment.id),
            keep_counts=partial(self.store.add_counts, experiment.id),
            look_at=evidence.look_at,
            read_durability=evidence.read_durability,
            note_plans=evidence.note_plans,
            note=evidence.note,
            announce=self.progress.step,
            passes=self.passes,
            is_counting=counted is not study,
            changed=frozenset(
                workload.data_set.key
                for workload in (self.workloads[name] for name in study.workloads)
                if not workload.is_read_only
            ),
        )

    def _counting(self, study: Study) -> Study:
        """Return the study with servers that count statements, if all can, and its loads have several."""
        if self._has_single_statements(study) or self._uncounted_note(study):
            return study
        return replace(study, variants=tuple(map(counting, study.variants)))

    def _uncounted_note(self, study: Study) -> tuple[str, ...]:
        """Return a note on why single statements have no verdicts; none for steps and grids."""
        if self._has_single_statements(study):
            return ()
        why = why_uncounted(study.variants) or self.arena.why_uncounted(study.variants)
        return (f"no verdicts on statements: {why}",) if why else ()

    def _has_single_statements(self, study: Study) -> bool:
        loads = (self.workloads[name] for name in study.workloads)
        return any(one.step or one.statement or one.cell for one in loads)

    def _is_over(self, study: Study, experiment: Experiment, *, is_look: bool) -> bool:
        """Whether the experiment ends before all planned rounds."""
        if counts_nothing(experiment.blocks) or is_hopeless(experiment):
            return True
        if study.design.stopping is not Stopping.FIXED:
            verdicts = verdicts_on(experiment, study, self.workloads)
            if is_finished(verdicts, study.design, experiment.blocks):
                return True
        return self.look is not None and is_look and self.look(experiment)

    def _conclude(self, study: Study, measured: Experiment, *, is_complete: bool) -> Experiment:
        """Store and return the experiment with its verdicts."""
        experiment = concluded(measured, study, self.workloads, is_complete=is_complete)
        self.store.add_blocks(experiment.id, experiment.blocks)
        self.store.save(experiment)
        return experiment


def _names(study: Study, experiment: Experiment, rounds_left: int) -> tuple[str, ...]:
    """Return the names of the next round's workloads."""
    chosen = next_cells(experiment, rounds_left) if study.is_adaptive else ()
    return chosen or study.workloads  # empty: comparing several variants takes all cells


def _label(done: int, planned: int | None, workloads: Sequence[Workload]) -> str:
    """Return the label of a round; ``planned`` None: the total is known only after the first round."""
    names = [workload.name for workload in workloads]
    listed = ", ".join(names) if len(names) <= _LISTED_NAMES else f"{names[0]} … {names[-1]}"
    return f"round {done + 1}{'' if planned is None else f' of {planned}'}: {listed}"


def next_cells(experiment: Experiment, rounds_left: int) -> tuple[str, ...]:
    """Return the names of the cells to measure next: a few on every curve."""
    return tuple(name for curve in measured_curves(experiment) for name in _names_in(curve, rounds_left))


def _names_in(curve: MeasuredCurve, rounds_left: int) -> Iterator[str]:
    levels = _levels_of(curve, rounds_left)
    return (name for name, level in curve.levels.items() if level in levels)


def _levels_of(curve: MeasuredCurve, rounds_left: int) -> Sequence[int]:
    candidates, rounds = sorted(set(curve.levels.values())), curve.rounds
    first = first_levels(candidates)
    if len(rounds) < ENOUGH or len({level for rates in rounds for level in rates}) < 2:
        return first
    found = observe(rounds)
    if in_question := next_levels(candidates, found, rounds_left):
        return in_question
    knee, levels = found.knee.low, [one.level for one in found.levels]
    below = max((level for level in levels if level < knee), default=knee)
    above = min((level for level in levels if level > knee), default=knee)
    return (below, knee, above, found.best)


def require_same(
    stored: Experiment, requested: Experiment, labels: AbstractSet[str], *, is_imported: bool
) -> None:
    """Raise UsageError if ``stored`` was imported, or differs from ``requested``.

    ``labels`` are notes on how the workloads run; ``stored`` must have all of them.
    """
    if is_imported:
        raise UsageError(
            f"experiment {stored.id} was imported: a measurement here would not be comparable",
            hint="repeat its command line without --resume",
        )
    if (CELL_OPTION in stored.options) != (CELL_OPTION in requested.options):
        was = "other hosts" if CELL_OPTION in stored.options else "this machine"
        raise UsageError(
            f"experiment {stored.id} had its load from {was}",
            hint="repeat its command line, with or without --cell as before, and add --resume",
        )
    if stored.variants != requested.variants or stored.workloads != requested.workloads:
        was = " ".join(str(variant) for variant in stored.variants)
        raise UsageError(
            f"experiment {stored.id} compared different variants or workloads",
            detail=f"it compared {was} on {', '.join(stored.workloads)}",
            hint="repeat its command line and add --resume",
        )
    if (stored.scales, stored.installation) != (requested.scales, requested.installation):
        raise UsageError(
            f"experiment {stored.id} used different data or a different PostgreSQL",
            detail=f"it ran {stored.installation} at scale {_scale(stored)}, not "
            f"{requested.installation} at scale {_scale(requested)}",
            hint="repeat its command line and add --resume",
        )
    if not labels <= {*stored.notes}:
        raise UsageError(
            f"experiment {stored.id} was run in a different mode or at a different size",
            detail=f"requested: {'; '.join(sorted(labels - {*stored.notes}))}",
            hint="repeat its command line and add --resume",
        )
    if stored.generators != requested.generators:
        issued = ", ".join(f"{workload} by {name}" for workload, name in stored.generators.items())
        raise UsageError(
            f"experiment {stored.id} used a different load generator",
            detail=f"it used {issued or 'that of an older pgdyno'}",
            hint="repeat its command line, including --generator, and add --resume",
        )
    if stored.design.is_isolated != requested.design.is_isolated:
        raise UsageError(
            f"experiment {stored.id} pinned client and server differently",
            hint="repeat its command line, including --isolate or --no-isolate, and add --resume",
        )


def _scale(experiment: Experiment) -> str:
    if experiment.tpch:
        return experiment.tpch.scale
    return ", ".join(sorted({str(scale) for scale in experiment.scales.values()}))
