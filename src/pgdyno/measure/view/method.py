"""The method of an experiment, in sentences and with all parameters. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.base.text import listed
from pgdyno.measure.design.phase import phase_of
from pgdyno.measure.view.parts_text import parts_design, parts_sentences
from pgdyno.measure.view.repeat import is_attached_as_found
from pgdyno.measure.view.wording import metric_of
from pgdyno.model.experiments.experiment import STRETCH_ROUNDS, Design, DesignKind, Experiment, Stopping
from pgdyno.model.experiments.workload import DRIVER, ResetPolicy
from pgdyno.report.elements.tables import Column, Table, columns
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT

_RESETS = {
    ResetPolicy.KEEP: "never: the workload does not change its data",
    ResetPolicy.RESTORE: "from a snapshot, before every round",
}


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with its lead."""

    lead: str
    text: str


def method_paragraphs(experiment: Experiment) -> tuple[Paragraph, ...]:
    """Return paragraphs on the design, the replication and the estimator."""
    design = experiment.design
    if experiment.parts:
        return (
            Paragraph("Measured in parts.", parts_sentences(experiment)),
            Paragraph("Verdict of a part.", " ".join(estimator_sentences(design))),
        )
    as_found: tuple[str, ...] = ()
    if is_attached_as_found(experiment):
        as_found = ("rounds", "slow changes are alike in all blocks of a round")
    return (
        _pairing(experiment),
        Paragraph("Replication.", _passes(design) if _is_steps(experiment) else _replication(experiment)),
        Paragraph("Effect and verdict.", " ".join(estimator_sentences(design, *as_found))),
    )


def estimator_sentences(
    design: Design,
    level_of: str = "started servers",
    because: str = "a server's own bias is the same in all blocks of its round",
) -> tuple[str, str, str]:
    """Return a sentence each on the derivation of effect, interval and verdict.

    ``level_of`` is the unit of replication for the interval, ``because`` the reason that it is not the block.
    """
    level, margin = numbers.share(design.level), numbers.share(design.equivalence_margin)
    bias = f", widened for a bias of {numbers.share(design.bias)} common to all rounds" if design.bias else ""
    interval = (
        f"Its {level} interval is a t interval at the level of {level_of} (blocks nested in rounds, "
        f"degrees of freedom by Satterthwaite, widened where neighbouring rounds are alike{bias}), "
        f"because {because}."
        if design.stopping is Stopping.FIXED
        else f"Its {level} interval is anytime-valid{bias}, because the data determined when "
        f"measuring ended ({_stopping(design)})."
    )
    effect = (
        "The effect is the ratio of variant to baseline within each block that counts, averaged on the "
        "logarithmic scale, first within rounds and then over them."
    )
    decision = (
        "“Better” and “worse” need a significant effect after Holm's correction over all "
        f"comparisons of a metric; “equivalent” needs two one-sided tests that place it within ±{margin}; "
        "everything else is inconclusive, including effects with drift or from too few rounds."
    )
    return effect, interval, decision


def design_table(experiment: Experiment) -> Table:
    """Return all parameters of the design; for an experiment of parts, a summary."""
    if experiment.parts:
        return parts_design(experiment)
    design, as_found = experiment.design, is_attached_as_found(experiment)
    pinned = "yes" if design.is_isolated else "no"
    turns = (
        ("Blocks per round", str(design.blocks_per_round)),
        ("Block", numbers.duration(design.block_s)),
        ("Turn", _turn(design)),
        *_phase(experiment),
        ("Left out at the start of a turn", numbers.duration(design.head_s)),
        ("Warm-up per variant and round", numbers.duration(design.warmup_s)),
    )
    beginning = "a copy of the data as loaded" if experiment.tpch else "an empty database"
    steps = (("Data of the steps", f"those left by the step before; each round begins with {beginning}"),)
    rows = (
        ("Design", str(design.kind)),
        (
            f"Rounds ({'the server was not restarted' if as_found else 'servers newly started'})",
            str(design.rounds),
        ),
        *(() if _is_steps(experiment) else turns),
        ("Clients per variant", _clients(experiment)),
        ("Server and client on separate CPUs", "not pinned" if as_found else pinned),
        ("Seed of all random choices", str(design.seed)),
        ("Confidence level", numbers.share(design.level)),
        *(
            (("Bias of a whole experiment, in the intervals", numbers.share(design.bias)),)
            if design.bias
            else ()
        ),
        ("Equivalence margin", f"±{numbers.share(design.equivalence_margin)}"),
        ("Power of the detectable effect", numbers.share(design.power)),
        ("Stopping", _end(experiment)),
        *(
            (f"Data reset, {workload}", _RESETS[policy])
            for workload, policy in experiment.reset_policies.items()
            if workload not in experiment.operations
        ),
        *(steps if experiment.operations else ()),
    )
    return Table(
        "Everything that decides how it was run and analysed", (Column("Parameter"), Column("Value")), rows
    )


def _phase(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yield rows on the part of the checkpoint cycle that write workloads cover, if there are any."""
    if any(phase_of(experiment, workload) is not None for workload in experiment.workloads):
        cycle_s = experiment.design.cycle_s
        block = "" if cycle_s is None else f", blocks of {numbers.duration(cycle_s)}"
        yield "Checkpoint phase of write workloads", f"{experiment.design.phase}{block}"
        if experiment.design.stretch_s:
            stretch = numbers.duration(experiment.design.stretch_s)
            yield (
                "Load on one server alone, write workloads",
                f"{stretch} each in {STRETCH_ROUNDS} rounds",
            )


def _turn(design: Design) -> str:
    """Return the length of turns, and that of write workloads if it differs."""
    reading, writing = numbers.duration(design.slice_s), numbers.duration(design.for_writing().slice_s)
    return reading if writing == reading else f"{reading}, {writing} for write workloads"


def _clients(experiment: Experiment) -> str:
    """Return the design's number of clients, or those of the cells of a grid."""
    own = sorted({cell.clients for cell in experiment.cells.values()})
    return f"{listed([str(clients) for clients in own])}, by cell" if own else str(experiment.design.clients)


def noise_floor_table(experiment: Experiment) -> Table:
    """Return the A/A results of two identical variants."""
    return Table(
        "Noise floor: two identical variants compared with each other on this host",
        columns("Workload", "Metric", "Difference", "Interval", "sd rounds", "sd blocks", numbers_from=2),
        tuple(
            (
                floor.workload,
                metric_of(floor.metric, experiment.operations.get(floor.workload)).title,
                numbers.change_within(floor.ratio, *floor.interval),
                numbers.change_range(*floor.interval),
                numbers.number(floor.sd_between_rounds),
                numbers.number(floor.sd_within_rounds),
            )
            for floor in experiment.noise_floor
        ),
    )


def _pairing(experiment: Experiment) -> Paragraph:
    design = experiment.design
    pinned = (
        "Servers and load generators had separate CPUs."
        if design.is_isolated
        else "Servers and load generators shared the CPUs."
    )
    if experiment.tpch:
        return Paragraph(
            "Passes.",
            "In every round each variant made one pass alone, one variant after another in random order, on "
            "a newly started server with a copy of the data as loaded: a power run (refresh "
            "function 1, the 22 queries in the order of stream 0, refresh function 2), then a throughput "
            "run. "
            "Values and refreshed rows were the same for all variants of a round, and others in the next. "
            f"Times are of plain executions, until the last row arrived. {pinned}",
        )
    if is_attached_as_found(experiment):
        return Paragraph(
            "A running server.",
            "It was measured as it ran: pgdyno did not start or restart it, and changed settings only in its "
            "own sessions. "
            f"The load took turns of {_turn(design)}; "
            f"the first {numbers.duration(design.head_s)} of every turn are left out.",
        )
    if _is_steps(experiment):
        return Paragraph(
            "Passes.",
            "In every round each variant went through all steps alone, one variant after another in random "
            "order, on a newly started server with an empty database. A step was measured from beginning to "
            "end, with the same rows and queries for all variants of a round, and others in the next. "
            f"{pinned}",
        )
    if design.kind is DesignKind.ALTERNATING:
        return Paragraph(
            "Alternating blocks.",
            "The variants were measured one after another, in random order within each block, each on a "
            f"newly started server with the same warm-up of {numbers.duration(design.warmup_s)}, on "
            f"byte-identical copies of the data. {pinned}",
        )
    return Paragraph(
        "Time-sliced duet.",
        "The servers of all variants were up and warm at the same time, on byte-identical copies of the "
        f"data. Their loads took turns of {_turn(design)} in balanced random order, so "
        f"other activity on the machine affects all variants alike. {_between_turns(experiment)} Each "
        "variant's transactions were counted against its own running time; "
        f"the first {numbers.duration(design.head_s)} of every turn are left out. {pinned}",
    )


def _between_turns(experiment: Experiment) -> str:
    """Describe the treatment of transactions in progress at a turn's end."""
    drained = [name for name, generator in experiment.generators.items() if generator == DRIVER]
    frozen = [name for name in experiment.workloads if name not in drained]
    parts = []
    if drained:
        parts.append(
            "one load generator drove all servers and let running transactions end before the next turn"
        )
    if frozen:
        parts.append("each server had its own load generator, frozen outside its turns")
    if drained and frozen:
        return f"For {', '.join(drained)}, {parts[0]}; for {', '.join(frozen)}, {parts[1]}."
    return f"{parts[0][0].upper()}{parts[0][1:]}."


def _passes(design: Design) -> str:
    return (
        f"{design.rounds} rounds were planned, each a pass over all steps by every variant. A step of a "
        "round is one block; if it is void for one variant, it is void for all."
    )


def _is_steps(experiment: Experiment) -> bool:
    """Whether all workloads are steps of a longer one."""
    return bool(experiment.workloads) and all(name in experiment.operations for name in experiment.workloads)


def _replication(experiment: Experiment) -> str:
    design = experiment.design
    plural = "" if design.blocks_per_round == 1 else "s"
    blocks = f"{design.blocks_per_round} block{plural} of {numbers.duration(design.block_s)}"
    if is_attached_as_found(experiment):
        return (
            f"{design.rounds} rounds were planned. A round measures each workload in {blocks}; the server is "
            "not restarted for it. Every started server is a little faster or slower by chance. This was a "
            "single start, so no number of rounds can show the variation between starts."
        )
    return (
        f"{design.rounds} rounds were planned. Each round starts new servers and measures each workload "
        f"in {blocks}. Blocks are replicated within rounds, and rounds above them: every started server is a "
        "little faster or slower by chance, which blocks of one round cannot show."
    )


def _end(experiment: Experiment) -> str:
    if experiment.terms is not None and experiment.terms.looks > 1:
        rounds = MINIMUM_ROUNDS_FOR_VERDICT
        return f"after the first {rounds} rounds that count, if they are decisive; otherwise at the end"
    return _stopping(experiment.design)


def _stopping(design: Design) -> str:
    if design.stopping is Stopping.PRECISION and design.precision is not None:
        return f"when the interval was no wider than ±{numbers.share(design.precision)}"
    if design.stopping is Stopping.DECIDED:
        return "when every verdict was decided"
    return "after a number of rounds fixed beforehand"
