"""What each layer of a plan is worth, as the terminal shows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pgdyno.model.verdict import Decision, Interval
from pgdyno.report.layers_text import layers_text

WORKLOADS = ("sysbench-read-only", "sysbench-read-write")


def verdict(variant: str, workload: str, effect: float | None, metric: str = "throughput_tps") -> Any:
    bounds = None if effect is None else Interval(effect - 0.02, effect, effect + 0.02, 0.95)
    decision = Decision.INCONCLUSIVE if effect is None else Decision.BETTER
    return SimpleNamespace(
        variant=variant, workload=workload, metric=metric, effect=effect, interval=bounds, decision=decision,
        reason="too few rounds",
    )  # fmt: skip


def trial(*verdicts: Any) -> Any:
    return SimpleNamespace(id="trial-1", baseline="default", workloads=WORKLOADS, verdicts=verdicts)


def test_every_variant_has_a_line_for_every_workload() -> None:
    text = layers_text(
        trial(
            verdict("without-system", WORKLOADS[0], 1.1),
            verdict("without-system", WORKLOADS[1], 1.05),
            verdict("plan", WORKLOADS[0], 1.4),
            verdict("plan", WORKLOADS[0], 0.7, "server_cpu_us_per_tx"),
            verdict("plan", WORKLOADS[1], None),
            verdict("pgtune", WORKLOADS[0], 1.0),
        ),
        ("plan", "without-system"),
    )
    assert text.replace("\N{NO-BREAK SPACE}", " ") == (
        "What each layer is worth: throughput against default, of the plan and without a layer:\n"
        "  plan            sysbench-read-only      +40.0 % (+38.0 % … +42.0 %), better\n"
        "                  sysbench-read-write     inconclusive: too few rounds\n"
        "  without-system  sysbench-read-only      +10.0 % (+8.0 % … +12.0 %), better\n"
        "                  sysbench-read-write     +5.0 % (+3.0 % … +7.0 %), better\n"
    )


def test_a_plan_of_one_layer_needs_no_table() -> None:
    assert layers_text(trial(verdict("plan", WORKLOADS[0], 1.4)), ("plan",)) == ""
