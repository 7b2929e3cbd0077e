"""Three walks through the house, each from where a value enters to where it is shown, and their returns.

A room here is a top-level package, or a folder of app/. A stay is a stretch of steps in one room, a return a
stay in a room that was left before. Steps that begin with "via" only hand the value on, and are no stay. Each
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
            "levers.application.shared_buffers:plan",
            "levers._contract:propose",
            "levers.engine.planner:plan_one",
            "levers.engine.planner:run_levers",
            "levers.engine.planner:make_plan",
            "app.changes.apply_advice:apply_request",
            "via cli.apply:command",
            "app.changes.apply:apply_plan",
            "app.changes.apply:_checked",
            "journal.apply:Opened.check",
            "journal.runs.changes:prepare",
            "journal.apply:ApplyRun.carry_out",
            "journal.apply:ApplyRun._change",
            "journal.apply:ApplyRun._receipts",
            "journal.runs.changes:receipts_for",
            "journal.runs.changes:write_receipts",
            "journal.ledger.log:Journal.add",
            "journal.apply:ApplyRun._change_server",
            "journal.runs.changes:make_changes",
            "journal.writers.alter_system:AlterSystemWriter.write",
            "journal.session.reload:reload_and_wait",
            "journal.runs.changes:read_back",
            "journal.writers.alter_system:AlterSystemWriter.verify",
            "journal.runs.by_hand:outcome",
            "report.plain.journal_text:apply_text",
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
            "app.studying.compare:compare",
            "app.measuring.measure:measure",
            "app.measuring.experiment:ExperimentRun.run",
            "app.measuring.experiment:ExperimentRun._rounds",
            "experiments.decisions.round_plan:RoundPlan.of",
            "experiments.decisions.round_plan:RoundPlan.after",
            "experiments.decisions.round_plan:_within",
            "experiments.decisions.stopping:rounds_within",
        ),
    ),
    Walk(
        "a block's throughput, from the log of the load to the verdict",
        10,
        6,
        (
            "generators.transaction_log:TransactionLog.read_new",
            "generators.drained:DrainedTurns.logs",
            "app.measuring.rounds:_measure",
            "experiments.blocks.transactions:parse_all",
            "experiments.blocks.observation:build_blocks",
            "experiments.blocks.observation:_arm_block",
            "experiments.blocks.attribution:count_arm",
            "experiments.blocks.blocks:arm_block",
            "via app.measuring.rounds:_duet_round",
            "via app.measuring.rounds:run_round",
            "via app.measuring.experiment:ExperimentRun._rounds",
            "store.experiments:ExperimentStore.add_blocks",
            "via app.measuring.experiment:ExperimentRun._conclude",
            "via experiments.records.conclusion:concluded",
            "via experiments.records.conclusion:verdicts_on",
            "experiments.verdicts.analysis:analyse",
            "experiments.verdicts.analysis:judge",
            "experiments.verdicts.analysis:_verdict",
            "experiments.verdicts.analysis:_ratios",
            "experiments.verdicts.analysis:log_ratios",
            "stats.decision:decide",
        ),
    ),
)


def room_of(step: str) -> str:
    """Return the room of a step: ``journal``, ``app/measuring``."""
    parts = step.partition(":")[0].split(".")
    return "/".join(parts[:2]) if parts[0] == "app" else parts[0]


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
    """Return the walks as the table that stands in ARCHITECTURE.md."""
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
