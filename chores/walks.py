"""Three walks through the house, each from where a value enters to where it is shown, and their returns.

A room here is a subject: a top-level package. A stay is a stretch of steps in one room, a return a stay in a
room that was left before. Steps that begin with "via" only hand the value on, and are no stay. Each
step has to exist, and to name a step before it or be named by one: so it calls it, or is called.

    python -m chores.walks
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

VIA = "via "
PACKAGE = Path(__file__).parents[1] / "src" / "pgdyno"


@dataclass(frozen=True)
class Walk:
    """Functions that a value passes, in order, as ``module:function``.

    The figures before are of commit 7dc725b, counted by hand.
    """

    title: str
    stays_before: int
    returns_before: int
    steps: tuple[str, ...]

    @property
    def rooms(self) -> tuple[str, ...]:
        """The rooms in the order of the stays."""
        working = (step for step in self.steps if not step.startswith(VIA))
        return tuple(room for room, _ in groupby(map(room_of, working)))

    @property
    def returns(self) -> int:
        """Stays in rooms that were left before."""
        return len(self.rooms) - len(set(self.rooms))

    def mistakes(self) -> Iterator[str]:
        """Yield the steps that do not exist, and those that no step leads to."""
        steps = tuple(step.removeprefix(VIA) for step in self.steps)
        for number, step in enumerate(steps):
            if definition_of(step) is None:
                yield f"{self.title}: there is no {step}"
            elif number and not any(_calls(one, step) or _calls(step, one) for one in steps[:number]):
                yield f"{self.title}: {step} neither calls a step before it nor is called by one"


WALKS = (
    Walk(
        "`shared_buffers`, from the lever to the report of an apply",
        10,
        3,
        (
            "plan.levers.application.shared_buffers:plan",
            "plan.levers._contract:Lever.propose",
            "plan.engine.planner:plan_one",
            "plan.engine.planner:run_levers",
            "plan.engine.planner:make_plan",
            "apply.apply_advice:apply_request",
            "via cli.apply:command",
            "apply.apply_plan:apply_plan",
            "apply.apply_plan:_FinalPlan.checked",
            "apply.apply:Opened.check",
            "apply.runs.changes:prepare",
            "apply.apply:ApplyRun.carry_out",
            "apply.apply:ApplyRun._change",
            "apply.apply:ApplyRun._receipts",
            "apply.runs.changes:receipts_for",
            "apply.runs.changes:write_receipts",
            "apply.ledger.log:Journal.add",
            "apply.apply:ApplyRun._change_server",
            "apply.runs.changes:make_changes",
            "apply.writers.alter_system:AlterSystemWriter.write",
            "apply.session.restart:reload_and_wait",
            "apply.runs.changes:read_back",
            "apply.writers.alter_system:AlterSystemWriter.verify",
            "apply.runs.manual_commands:outcome",
            "apply.journal_text:apply_text",
        ),
    ),
    Walk(
        "`--budget`, from the command line to the number of rounds",
        27,
        13,
        (
            "cli.quantities:duration",
            "cli._measuring_options:_OPTIONS",
            "cli._measuring_options:measuring_options",
            "cli.compare:command",
            "cli.measuring:Measuring.conditions",
            "cli.measuring:Measuring._conditions",
            "measure.measure:measure",
            "measure.experiment:ExperimentRun.run",
            "measure.experiment:ExperimentRun._rounds",
            "measure.decisions.round_plan:RoundPlan.of",
            "measure.decisions.round_plan:RoundPlan.after",
            "measure.decisions.round_plan:_within",
            "measure.decisions.stopping:rounds_within",
        ),
    ),
    Walk(
        "a block's throughput, from the log of the load to the verdict",
        10,
        6,
        (
            "load.transaction_log:TransactionLog.read_new",
            "load.driver_turns:DrainedTurns.logs",
            "measure.rounds:_measure",
            "measure.blocks.transactions:parse_all",
            "measure.blocks.observation:build_blocks",
            "measure.blocks.observation:_arm_block",
            "measure.blocks.attribution:count_arm",
            "measure.blocks.blocks:arm_block",
            "via measure.rounds:_duet_round",
            "via measure.rounds:run_round",
            "via measure.experiment:ExperimentRun._rounds",
            "store.experiments:ExperimentStore.add_blocks",
            "via measure.experiment:ExperimentRun._conclude",
            "via measure.records.conclusion:concluded",
            "via measure.records.conclusion:verdicts_on",
            "measure.verdicts.analysis:analyse",
            "measure.verdicts.analysis:judge",
            "measure.verdicts.analysis:_verdict",
            "measure.verdicts.analysis:_ratios",
            "measure.verdicts.analysis:log_ratios",
            "stats.decision:decide",
        ),
    ),
)


def room_of(step: str) -> str:
    """Return the subject that a step lies in: ``apply``."""
    return step.partition(":")[0].partition(".")[0]


def definition_of(step: str) -> ast.AST | None:
    """Return the definition of ``module:name`` or ``module:Class.method``; None if there is none."""
    module, _, name = step.partition(":")
    path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
    found: ast.AST | None = _tree(path) if path.is_file() else None
    for part in name.split("."):
        found = dict(_definitions(found)).get(part)
    return found


def _definitions(node: ast.AST | None) -> Iterator[tuple[str, ast.AST]]:
    for child in [] if node is None else ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield child.name, child
        elif isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
            yield child.targets[0].id, child


@cache
def _tree(path: Path) -> ast.AST:
    return ast.parse(path.read_text())


def _calls(one: str, other: str) -> bool:
    """Whether the definition of a step names another step, decorators included."""
    return re.split(r"[:.]", other)[-1] in _names_in(one)


@cache
def _names_in(step: str) -> frozenset[str]:
    definition = definition_of(step)
    nodes = () if definition is None else tuple(ast.walk(definition))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return frozenset(names | {node.attr for node in nodes if isinstance(node, ast.Attribute)})


def table() -> str:
    """Return the walks as the table that stands in docs/house.md."""
    rows = [
        f"| {walk.title} | {walk.stays_before}, {walk.returns_before} | {len(walk.rooms)}, {walk.returns} | "
        f"{' → '.join(walk.rooms)} |"
        for walk in WALKS
    ]
    return "\n".join(["| walk | stays, returns before | now | rooms |", "|---|---:|---:|---|", *rows])


def main() -> None:
    """Print the table, or the mistakes."""
    mistakes = [mistake for walk in WALKS for mistake in walk.mistakes()]
    print("\n".join(mistakes) if mistakes else table())


if __name__ == "__main__":
    main()
