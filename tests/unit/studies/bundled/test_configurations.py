"""A plan of several layers is built up between the baseline and itself."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.measure.bundled_study import PGTUNE, StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.plans.plan import PLAN
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import configurations

CONTEXT = StudyContext(
    Variant("default", {"jit": "off"}),
    ("sysbench-read-only",),
    Design(),
    {PLAN: {"work_mem": "8MB", "/proc/sys/vm/swappiness": "1"}, PGTUNE: {"work_mem": "4MB"}},
)


def test_a_plan_of_one_layer_stands_beside_the_baseline_and_pgtune() -> None:
    study = configurations.study(CONTEXT)
    assert [variant.name for variant in study.variants] == ["default", PLAN, PGTUNE]
    assert [variant.server for variant in study.variants] == [None, None, None]


def test_each_layer_adds_to_the_one_before_and_the_last_one_brings_its_build() -> None:
    layers = {"application": {"work_mem": "8MB"}, "application+system": CONTEXT.configurations[PLAN]}
    context = replace(
        CONTEXT,
        configurations={**layers, **CONTEXT.configurations},
        layers=tuple(layers),
        servers={PLAN: "built-00000000000a"},
    )
    variants = configurations.study(context).variants
    assert [(variant.name, variant.server) for variant in variants] == [
        ("default", None), ("application", None), ("application+system", None),
        (PLAN, "built-00000000000a"), (PGTUNE, None),
    ]  # fmt: skip
    assert variants[1].settings == {"jit": "off", "work_mem": "8MB"}
    assert variants[2].settings == variants[3].settings
