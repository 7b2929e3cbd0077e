"""The machine as it is against TuneD's profile and pgdyno's system layer."""

from __future__ import annotations

import dataclasses

from tests.fix_settings import host_of

from pgdyno.base.facts import Fact
from pgdyno.measure.bundled_study import StudyContext
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.variants.variant import Variant
from pgdyno.plan.peers.tuned_profile import tuned_files
from pgdyno.studies.bundled import tuned_vs_default

SWAPPINESS = "/proc/sys/vm/swappiness"
GOVERNORS = [f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor" for cpu in (0, 1)]


def test_of_the_profile_is_taken_what_the_kernel_has() -> None:
    host = dataclasses.replace(host_of(), kernel_files={SWAPPINESS: Fact("60", SWAPPINESS)})
    assert tuned_files(host) == {SWAPPINESS: "3"}
    assert tuned_files(host_of())["/sys/kernel/mm/transparent_hugepage/enabled"] == "never"


def test_a_governor_is_set_on_every_cpu() -> None:
    files = tuned_files(host_of(kernel_files=dict.fromkeys(GOVERNORS, "powersave")))
    assert [files[path] for path in GOVERNORS] == ["performance", "performance"]


def test_a_choice_that_the_kernel_does_not_offer_is_left_out() -> None:
    files = tuned_files(host_of(kernel_files={"/sys/kernel/mm/transparent_hugepage/enabled": "[always]"}))
    assert "/sys/kernel/mm/transparent_hugepage/enabled" not in files


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
