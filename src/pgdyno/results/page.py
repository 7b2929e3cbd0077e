"""An experiment as one HTML file. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.accelerate.view import at_load_table, decision_box
from pgdyno.base import numbers
from pgdyno.base.text import counted
from pgdyno.measure.design.phase import phase_of
from pgdyno.measure.verdicts.durability import warnings
from pgdyno.measure.verdicts.part_worths import attributions
from pgdyno.measure.view.awake_sentence import awake_sentence
from pgdyno.measure.view.cards import before_and_after, cards
from pgdyno.measure.view.figures import (
    forest_figure,
    memory_figure,
    ratio_figure,
    value_figure,
    verdict_table,
)
from pgdyno.measure.view.method import design_table, method_paragraphs, noise_floor_table
from pgdyno.measure.view.parts_text import attribution_figure, how_to_add, parts_table
from pgdyno.measure.view.repeat import is_attached_as_found, repeat_command
from pgdyno.measure.view.series import metrics_of
from pgdyno.measure.view.statements_table import changed_plans, statement_tables
from pgdyno.measure.view.void_blocks import (
    adjustment_tables,
    drain_table,
    failures_table,
    left_out_table,
    refusals,
    void_block_table,
    void_rule_table,
)
from pgdyno.measure.view.wording import SIGNS, answers, emulation_warning, patch_warnings, step_names
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import METRICS, THROUGHPUT
from pgdyno.model.tuning.tuning import Tuning
from pgdyno.model.variants.variant import Variant
from pgdyno.report.charts.marks import arm_class, arm_shape, mark
from pgdyno.report.elements.facts import all_facts, configured_settings, host_facts, server_facts
from pgdyno.report.elements.html import render
from pgdyno.report.elements.settings import unsafe_variants, variant_settings
from pgdyno.report.elements.tables import Figure, Table
from pgdyno.studies.grids.grid import grid
from pgdyno.studies.grids.grid_tables import cell_name
from pgdyno.studies.peers_text import FASTEST_LOOKS_FASTER, peer_tables
from pgdyno.studies.views import views
from pgdyno.tune.view import search_view
from pgdyno.workload.view import likeness_sentences, likeness_table

_PAGE = "page.html.j2"
# Notes with one of these phrases are displayed as warnings.
_LOUD = (
    "not durable",
    "patched:",
    "too noisy",
    "machine disturbed",
    "none is left out",
    "confounded",
    "answered otherwise",
    "failed trial",
)
_CONFOUNDED = "CONFOUNDED:"
_DEFINITION_LENGTH = 60  # characters of settings in a legend
_RATIOS_IN_VIEW = 3  # variants per workload; further charts are collapsed
_MOST_TRIALS = 1000  # of a grid in charts, at about 530 bytes each: keeps the page below 1.5 MB


@dataclass(frozen=True)
class WorkloadFigures:
    """All charts of one workload: those of the leading metric visible, the others collapsed."""

    workload: str
    ratios: tuple[Figure, ...]
    values: tuple[Figure, ...]
    more: tuple[Figure, ...]
    void: tuple[str, ...]
    step: object | None = None  # the benchmark's own part on this workload
    phase: str = ""  # phase of the checkpoint cycle, of a workload that changes its data
    cell: str = ""  # short name of one of many workloads: its place in a grid, or its query


@dataclass(frozen=True)
class Arm:
    """A variant in the legend."""

    name: str
    definition: str
    style: str
    mark: Markup
    is_baseline: bool


def render_page(experiment: Experiment, *, is_imported: bool = False, tuning: Tuning | None = None) -> str:
    """Return the whole report. ``experiment`` must be free of secrets: the page shows all of it.

    ``tuning`` is the search whose result the experiment proves. ``is_imported`` adds a warning to the command
    that repeats it: others may have written it.
    """
    return render(
        _PAGE,
        experiment=experiment,
        is_imported=is_imported,
        decision=decision_box(experiment),
        answers=answers(experiment),
        cards=cards(experiment),
        **_notes(experiment),
        forest=forest_figure(experiment),
        verdicts=verdict_table(experiment),
        adjusted=adjustment_tables(experiment),
        not_adjusted=refusals(experiment),
        statements=[*statement_tables(experiment)],
        changed_plans=changed_plans(experiment),
        failures=failures_table(experiment),
        at_load=at_load_table(experiment),
        likenesses=_likenesses(experiment),
        attribution=attribution_figure(experiment),
        how_to_add=how_to_add(attributions(experiment)),
        before_and_after=before_and_after(experiment),
        peers=peer_tables(experiment),
        fastest_looks_faster=FASTEST_LOOKS_FASTER,
        parts=parts_table(experiment) if experiment.parts else None,
        search=search_view(tuning) if tuning else None,
        grid=grid(experiment),
        is_attached_as_found=is_attached_as_found(experiment),
        **{name: value for view in views() for name, value in view.page(experiment).items()},
        signs=SIGNS,
        arms=_arms(experiment),
        workloads=_workloads(experiment),
        settings=variant_settings(experiment),
        memory=memory_figure(experiment.plan.memory_proof)
        if experiment.plan and experiment.plan.memory_proof
        else None,
        **_facts(experiment),
        **_method(experiment),
    )


def _notes(experiment: Experiment) -> dict[str, object]:
    """Return the notes, with warnings separated from the others.

    Variants that are not durable have their own warning, which replaces the note on them.
    """
    unsafe = unsafe_variants(experiment)
    loud = [note for note in experiment.notes if any(mark in note.casefold() for mark in _LOUD)]
    confounded = [note for note in loud if note.startswith(_CONFOUNDED)]
    folded = confounded if len(confounded) > 1 else []  # in full they would hide the verdicts
    return {
        "unsafe": unsafe,
        "loud_notes": [
            *warnings(experiment),
            *filter(None, [emulation_warning(experiment)]),
            *(one for one in patch_warnings(experiment) if one not in experiment.notes),
            *(
                note
                for note in loud
                if note not in folded and (not unsafe or _LOUD[0] not in note.casefold())
            ),
        ],
        "confounded_notes": [note.removeprefix(_CONFOUNDED).strip() for note in folded],
        "notes": [
            *([] if experiment.awake is None else [awake_sentence(experiment.awake)]),
            *(note for note in experiment.notes if note not in loud),
        ],
    }


def _likenesses(experiment: Experiment) -> list[tuple[str, Table]]:
    """Return a sentence and a table for each captured workload."""
    tables = map(likeness_table, experiment.likenesses.values())
    return list(zip(likeness_sentences(experiment), tables, strict=True))


def _facts(experiment: Experiment) -> dict[str, object]:
    return {
        "host_facts": host_facts(experiment.host),
        "all_host_facts": all_facts(experiment.host),
        "server_facts": server_facts(experiment.server),
        "all_server_facts": all_facts(experiment.server, without=("settings",)),
        "configured": configured_settings(experiment.server),
    }


def _method(experiment: Experiment) -> dict[str, object]:
    return {
        "paragraphs": method_paragraphs(experiment),
        "design": design_table(experiment),
        "void_rules": void_rule_table(experiment),
        "drains": drain_table(experiment),
        "void_blocks": void_block_table(experiment),
        "left_out": left_out_table(experiment),
        "noise_floor": noise_floor_table(experiment),
        "repeat": repeat_command(experiment),
        "margin": numbers.share(experiment.design.equivalence_margin),
    }


def _workloads(experiment: Experiment) -> list[WorkloadFigures]:
    evidence = {name: value for view in views() for name, value in view.by_workload(experiment).items()}
    return [
        _cell(experiment, workload, cell_name(experiment.cells[workload]))
        if workload in experiment.cells
        else _cell(experiment, workload, step_names(experiment)[workload])
        if experiment.tpch
        else _workload(experiment, workload, evidence.get(workload))
        for workload in experiment.workloads
    ]


def _cell(experiment: Experiment, workload: str, name: str) -> WorkloadFigures:
    """Return the charts of one of many workloads: throughput only, none above ``_MOST_TRIALS``."""
    folded = experiment.cells or experiment.operations
    trials = sum(len(block.arms) for block in experiment.blocks if block.workload in folded)
    values = _values(experiment, workload, [THROUGHPUT]) if trials <= _MOST_TRIALS else ()
    return WorkloadFigures(workload, (), values, (), _void_trials(experiment, workload), cell=name)


def _void_trials(experiment: Experiment, workload: str) -> tuple[str, ...]:
    return tuple(
        f"round {block.round + 1}, block {block.index + 1}: {reason}"
        for block in experiment.blocks
        if block.workload == workload
        for reason in block.void_reasons
    )


def _workload(experiment: Experiment, workload: str, step: object | None) -> WorkloadFigures:
    """Return the charts of one workload, with a ratio chart per variant and metric with a verdict.

    For a step, metrics without a verdict are in its tables: ten steps would have hundreds of charts.
    """
    measured = [name for name in metrics_of(experiment, workload) if name in METRICS]
    judged = [name for name in measured if METRICS[name].has_verdict]
    leading = [name for name in judged if name == THROUGHPUT] or judged[:1]
    others = [name for name in judged if name not in leading]
    unjudged = [name for name in measured if name not in judged and step is None]
    ratios = _ratios(experiment, workload, leading)
    return WorkloadFigures(
        workload,
        ratios[:_RATIOS_IN_VIEW],
        _values(experiment, workload, leading),
        (
            *ratios[_RATIOS_IN_VIEW:],
            *_ratios(experiment, workload, others),
            *_values(experiment, workload, others),
            *_values(experiment, workload, unjudged),
        ),
        _void_trials(experiment, workload),
        step,
        phase_of(experiment, workload) or "",
    )


def _ratios(experiment: Experiment, workload: str, metrics: list[str]) -> tuple[Figure, ...]:
    found = (
        ratio_figure(experiment, (workload, metric, variant.name, experiment.baseline))
        for metric in metrics
        for variant in experiment.variants
        if variant.name != experiment.baseline
    )
    return tuple(figure for figure in found if figure)


def _values(experiment: Experiment, workload: str, metrics: list[str]) -> tuple[Figure, ...]:
    found = (value_figure(experiment, workload, metric) for metric in metrics)
    return tuple(figure for figure in found if figure)


def _arms(experiment: Experiment) -> tuple[Arm, ...]:
    return tuple(
        Arm(
            name=variant.name,
            definition=_definition(variant),
            style=arm_class(order),
            mark=mark(arm_shape(order), 13, 7, 5, f"mark {arm_class(order)}"),
            is_baseline=variant.name == experiment.baseline,
        )
        for order, variant in enumerate(experiment.variants)
    )


def _definition(variant: Variant) -> str:
    """Return a variant's settings if they fit into a legend, else their number."""
    settings = str(Variant("", variant.settings)).removeprefix(":").replace(",", ", ")
    return settings if len(settings) <= _DEFINITION_LENGTH else counted(len(variant.settings), "setting")
