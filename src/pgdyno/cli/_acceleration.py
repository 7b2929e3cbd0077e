"""Output of ``accelerate``: tables, the decision and its consequences; or one JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.cli.output import echo, print_json
from pgdyno.host.kernel_file import display_name

if TYPE_CHECKING:  # imported late to keep --help fast
    from pgdyno.accelerate.attached_server import AttachedAcceleration
    from pgdyno.accelerate.request import BuildAdvice
    from pgdyno.measure.decisions.plan_decision import PlanDecision
    from pgdyno.model.experiments.experiment import Experiment
    from pgdyno.model.plans.plan import Plan


def print_acceleration(result: AttachedAcceleration, *, is_json: bool) -> None:
    """Print the results, the decision, and the action taken."""
    from pgdyno.accelerate.view import more_sentence, without_per_application
    from pgdyno.cli.results import print_experiment
    from pgdyno.measure.view.awake_sentence import awake_remark
    from pgdyno.measure.view.parts_text import attribution_text
    from pgdyno.results.report import write_report

    if is_json:
        print_json(_document(result))
        return
    done = result.acceleration
    print_experiment(done.experiment)
    without = without_per_application(done.experiment)
    echo(f"\n{done.decision.sentence if without is None else without.sentence}")
    if more := more_sentence(done.experiment, done.decision if without is None else without.decision):
        echo(more)
    if without is not None:
        echo(without.whole_sentence(done.decision))
    if remark := awake_remark(done.experiment):
        echo(remark)
    _print_plan(done.plan)
    if text := attribution_text(done.experiment):
        echo(f"\n{text}", nl=False)
    if done.build_advice is not None:
        echo(f"\n{done.build_advice.sentence}")
    _print_applied(result)
    echo(f"\nReport: {write_report(done.experiment)}")


def _print_plan(plan: Plan) -> None:
    for line in plan.lines:
        echo(f"  {display_name(line.change.key)} = {line.change.value}")
    if plan.unmeasured:
        echo("Not measured here, and unchanged (pgdyno apply --layers all --unmeasured changes these too):")
    for line in plan.unmeasured:
        echo(f"  {display_name(line.change.key)} = {line.change.value}")
    if plan.skipped:
        echo(f"Left alone: {len(plan.skipped)} levers; for the reasons: pgdyno advise --layers all.")


def _print_applied(result: AttachedAcceleration) -> None:
    """Print the applied changes, or the reason for none and the next step for the plan."""
    from pgdyno.accelerate.view import watch_text
    from pgdyno.apply.journal_text import apply_text

    if result.watched is not None:
        echo(f"\n{watch_text(result.watched)}")
    if result.applied is not None:
        echo(f"\n{apply_text(result.applied)}", nl=False)
    if result.not_applied is not None:
        echo(f"\nNothing was applied: {result.not_applied}.")
    if result.handed_over:
        echo(f"\n{result.handed_over}", nl=False)


def _document(result: AttachedAcceleration) -> dict[str, object]:
    from pgdyno.accelerate.view import without_per_application
    from pgdyno.base.facts import to_document
    from pgdyno.model.plans.plan import PLAN
    from pgdyno.results.documents import comparison_document

    done = result.acceleration
    without = without_per_application(done.experiment)
    return {
        "decision": {"variant": PLAN, **_decision_document(done.decision, done.experiment)},
        "without_per_application": None
        if without is None
        else {
            "variant": without.variant,
            "settings": list(without.settings),
            **_decision_document(without.decision, done.experiment),
        },
        "is_accepted": done.decision.pays,
        "reasons": list(done.decision.reasons),
        "plan": to_document(done.plan),
        "build_advice": _advice_document(done.build_advice),
        "applied": to_document(result.applied),
        "not_applied": result.not_applied,
        "handed_over": result.handed_over or None,
        "watched": to_document(result.watched),
        **comparison_document(done.experiment),
        "layers": to_document(done.layer_verdicts),
        "at_load": to_document(done.experiment.at_load),
        "parts": [],
        "earlier_experiments": [],
    }


def _decision_document(decision: PlanDecision, experiment: Experiment) -> dict[str, object]:
    from pgdyno.measure.decisions.plan_decision import minutes_to_decide

    return {
        "state": decision.state.value,
        "is_accepted": decision.pays,
        "sentence": decision.sentence,
        "minutes_to_decide": minutes_to_decide(experiment, decision),
        "reasons": list(decision.reasons),
    }


def _advice_document(advice: BuildAdvice | None) -> dict[str, object] | None:
    if advice is None:
        return None
    return {
        "command": advice.command,
        "minutes": advice.minutes,
        "gain": advice.gain,
        "missing": advice.missing or None,
        "sentence": advice.sentence,
    }
