"""Every peer's configuration against pgdyno's, in one interleaved comparison.

The servers run side by side, so each configuration is made for the same smaller machine: its share of the
memory available here. A benchmark of steps runs in passes instead, one server at a time, and each
configuration is made for all of the memory. ``plan/peers/`` has the tools and the sources of their rules.
"""

from __future__ import annotations

from dataclasses import replace

from pgdyno.base.errors import SettingError, UsageError
from pgdyno.measure.bundled_study import BundledStudy, Option, StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.plans.plan import Layer
from pgdyno.model.variants.variant import Variant, parse_variant, require_durable
from pgdyno.postgres.guc import bytes_of

_ROUNDS = 14  # about the number of servers, which makes effects of seats distinguishable from others
LEAST_BYTES = 1 << 30
"""Least memory that configurations are made for: pg-configurator and the memory proof accept no less."""


def _memory(texts: tuple[str, ...]) -> int | None:
    """Parse a size in PostgreSQL's notation; None if not given. Raises: UsageError."""
    if not texts:
        return None
    try:
        size_bytes = bytes_of(texts[-1], "B") if not texts[-1].isdecimal() else 0
    except SettingError as error:
        raise UsageError(f"--memory {texts[-1]} is not a size", hint="write it like --memory 4GB") from error
    if size_bytes < LEAST_BYTES:
        raise UsageError(
            f"--memory {texts[-1]} is less than the 1 GB that the rules need",
            hint="write it like --memory 4GB",
        )
    return size_bytes


def _benchmark(texts: tuple[str, ...]) -> str | None:
    """Return the name of a benchmark; None if not given. Raises: UsageError if unknown."""
    if texts and texts[-1] not in BENCHMARKS:
        raise UsageError(
            f'no benchmark "{texts[-1]}" for peers',
            hint=f"known: {' and '.join(BENCHMARKS)}; other loads are named with --workload",
        )
    return texts[-1] if texts else None


def _variants(texts: tuple[str, ...]) -> tuple[Variant, ...]:
    """Parse additional configurations. Raises: VariantError; DurabilityError for one that may lose data."""
    found = tuple(map(parse_variant, texts))
    require_durable(found)
    return found


BENCHMARKS = ("insert-benchmark", "tpch")
"""Studies with steps in which peers can be measured."""
BENCHMARK = Option(
    "benchmark",
    "instead of a workload, measure the steps of insert-benchmark or the runs of tpch, in passes, one server "
    "after another. The options of that study apply.",
    _benchmark,
    metavar="|".join(BENCHMARKS),
)
MEMORY = Option(
    "memory",
    "memory of the machine that every configuration is made for [default: a share of the available memory, "
    "such that all servers fit side by side; in passes, all of it].",
    _memory,
    metavar="SIZE",
)
VARIANT = Option(
    "variant",
    "an additional configuration to compare with the peers, [SERVER@]NAME:setting=value,…; repeatable.",
    _variants,
    metavar="VARIANT",
    is_repeatable=True,
    is_recorded=False,
)


def study(context: StudyContext) -> Study:
    """Return a comparison of the default with every peer's configuration."""
    baseline = context.baseline
    others = tuple(
        replace(baseline, name=name, settings=settings, server=context.servers.get(name, baseline.server))
        for name, settings in context.configurations.items()
    )
    return Study(
        name="peers",
        question="Is PostgreSQL faster with pgdyno's plan than with what other tools and services set?",
        variants=(baseline, *others),
        workloads=context.workloads,
        design=context.design,
        notes=context.notes,
    )


STUDY = BundledStudy(
    title="configurations of other tools and services against pgdyno's plan, alone and with a build",
    study=study,
    needs_peers=True,
    layers=(Layer.APPLICATION, Layer.SYSTEM, Layer.HARDWARE, Layer.COMPILER),
    measures=("sysbench-read-only", "sysbench-read-write"),
    design=Design(rounds=_ROUNDS, blocks_per_round=1),  # a block of so many servers is long enough
    options=(MEMORY, VARIANT, BENCHMARK),
)
