"""Validate every variant's answers to the 22 queries before timing, and record its plans.

Where the answers at this scale are known, they are compared with them; they have to be the same on all
variants in any case. A query that fails, or answers wrongly, ends the experiment here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from pgdyno.base.errors import MeasurementError
from pgdyno.base.ports import Progress
from pgdyno.load.query_session import QuerySession
from pgdyno.measure.arenas.arena import Arena
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.step_failure import failures_named
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.tpch import TpchFacts
from pgdyno.model.experiments.workload import Workload
from pgdyno.postgres.plan_document import explained
from pgdyno.postgres.plan_shape import PlanNode
from pgdyno.postgres.planner.query_plan import plan_of
from pgdyno.workload.tpch.answers import Answers, answer_of, known_answers
from pgdyno.workload.tpch.queries import NUMBERS, query_text, validation_parameters

_EXPLAIN = "EXPLAIN (FORMAT JSON) "


def validated(
    experiment: Experiment, arena: Arena, workloads: Sequence[Workload], progress: Progress
) -> Experiment:
    """Return the experiment with the plans of all variants, and a note on their answers.

    Raises: MeasurementError for a wrong answer, naming query and variant; GeneratorFailedError for a query
    that fails.
    """
    facts, data_set = experiment.tpch, workloads[0].data_set
    if facts is None:
        return experiment
    plans: dict[str, Mapping[str, PlanNode]] = {}
    answers = Answers()
    for variant in experiment.variants:
        progress.step(f"checking the answers of {variant.name}")
        arena.restore([variant], [0], data_set)
        with arena.arms([variant], [0], data_set) as arms:
            plans[variant.name] = checked_plans(arms[0], facts.thousandths, answers)
    notes = tuple(dict.fromkeys((*experiment.notes, _note(facts))))
    return replace(experiment, tpch=replace(facts, plans=plans), notes=notes)


def checked_plans(arm: Arm, thousandths: int, answers: Answers) -> dict[str, PlanNode]:
    """Compare an arm's answers with known ones and other arms'; return its plans by query.

    Raises: as ``validated`` does.
    """
    known, plans = known_answers(thousandths), {}
    with ExitStack() as stack:
        with failures_named("a connection", arm):
            session = stack.enter_context(QuerySession.open(arm.target()))
        for number in NUMBERS:
            name, sql = f"q{number}", query_text(number, validation_parameters(number, thousandths))
            with failures_named(name, arm):
                ((document,),) = session.query(_EXPLAIN + sql).rows
                answer = answer_of(session.query(sql).rows)
            plans[name] = plan_of(explained(document)["Plan"])
            if number in known and answer != known[number]:
                raise MeasurementError(
                    f"the answer of {name} on the server of {arm.variant.name} is wrong",
                    detail=f"{answer.rows} rows with checksum {answer.checksum} instead of "
                    f"{known[number].rows} with {known[number].checksum}",
                    hint="this server answers wrongly, or its data are damaged: nothing of it is measured",
                )
            answers.compare("the validation run", arm.variant.name, name, answer)
    return plans


def _note(facts: TpchFacts) -> str:
    if known_answers(facts.thousandths):
        return "all 22 answers were checked before anything was timed: they are the known ones"
    return (
        f"the answers at scale {facts.scale} are not known; before anything was timed they were the same on "
        "all variants"
    )
