"""The machine as it is against TuneD's profile and pgdyno's system layer."""

from __future__ import annotations

from pgdyno.measure.bundled_study import StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import tuned_vs_default

SWAPPINESS = "/proc/sys/vm/swappiness"


def test_every_configuration_that_there_is_becomes_a_variant_beside_the_machine_as_found() -> None:
    configurations = {
        "plan": {"jit": "off", SWAPPINESS: "10"},
        "application": {"jit": "off"},
        "system": {SWAPPINESS: "10"},
        "tuned": {SWAPPINESS: "3"},
        "pgtune": {"jit": "on"},
    }
    context = StudyContext(Variant("default"), ("pgbench-select",), Design(), configurations)
    assert tuned_vs_default.study(context).variants == (
        Variant("default"),
        Variant("tuned", {SWAPPINESS: "3"}),
        Variant("system", {SWAPPINESS: "10"}),
        Variant("application", {"jit": "off"}),
        Variant("plan", {"jit": "off", SWAPPINESS: "10"}),
    )


def test_where_nothing_of_the_machine_is_planned_there_is_no_such_variant() -> None:
    context = StudyContext(Variant("default"), (), Design(), {"plan": {"jit": "off"}, "system": {}})
    names = [variant.name for variant in tuned_vs_default.study(context).variants]
    assert names == ["default", "plan"]
