"""The default against the whole plan, layer by layer."""

from __future__ import annotations

from pgdyno.measure.bundled_study import StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.studies.bundled import accelerator_study


def test_each_layer_comes_on_top_of_those_before_it_and_its_programs_are_run() -> None:
    swappiness = "/proc/sys/vm/swappiness"
    configurations = {
        "application": {"jit": "off"},
        "application+system": {"jit": "off", swappiness: "10"},
        "plan": {"jit": "off", swappiness: "10"},
        "pgtune": {"jit": "on"},
    }
    context = StudyContext(
        Variant("default", {"fsync": "on"}),
        ("sysbench-read-only",),
        Design(),
        configurations,
        servers={"plan": "built-1"},
        layers=("application", "application+system"),
    )
    assert accelerator_study.study(context).variants == (
        Variant("default", {"fsync": "on"}),
        Variant("application", {"fsync": "on", "jit": "off"}),
        Variant("application+system", {"fsync": "on", "jit": "off", swappiness: "10"}),
        Variant("plan", {"fsync": "on", "jit": "off", swappiness: "10"}, server="built-1"),
    )
