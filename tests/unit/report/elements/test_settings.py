"""Settings before and after."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import experiment

from pgdyno.model.experiments.experiment import SettingDifference
from pgdyno.model.variants.variant import Variant
from pgdyno.report.elements.settings import SettingRow, is_same_value, unsafe_variants, variant_settings


def test_before_comes_from_the_baseline_and_a_deviation_is_flagged() -> None:
    (plan,) = variant_settings(experiment())
    assert plan.variant == "plan"
    assert plan.rows == (
        SettingRow("max_wal_size", "1GB", "8GB", "8192MB", is_as_requested=True),
        SettingRow("shared_buffers", "128MB", "2GB", "2GB", is_as_requested=True),
        SettingRow("work_mem", "4MB", "16MB", "15MB", is_as_requested=False),
    )


def test_without_a_record_of_the_baseline_the_plan_says_what_was_found() -> None:
    base = experiment()
    own = tuple(s for s in base.settings if s.variant == "plan")
    (plan,) = variant_settings(replace(base, settings=own))
    assert [row.before for row in plan.rows] == ["1GB", "128MB", "4MB"]


def test_what_was_not_recorded_is_not_guessed() -> None:
    (plan,) = variant_settings(replace(experiment(), settings=(), plan=None))
    assert plan.rows[1].before == "128MB"  # among the server's facts
    assert plan.rows[0] == SettingRow("max_wal_size", "–", "8GB", "–", is_as_requested=True)


def test_baseline_with_settings_of_its_own_is_shown_too() -> None:
    base = replace(experiment(), variants=(Variant("default", {"jit": "off"}),), settings=())
    assert [variant.variant for variant in variant_settings(base)] == ["default"]


@pytest.mark.parametrize(
    ("requested", "effective", "expected"),
    [
        ("2GB", "2048MB", True),
        ("90s", "1500ms", False),
        ("6171023kB", "6171024kB", True),  # rounded up to a block of 8 kB
        ("100ms", "99ms", False),
        ("1min", "60s", True),
        ("ON", "on", True),
        ("16384", "128MB", False),
        ("16384", "16384", True),
        ("replica", "minimal", False),
        ("", "", True),
    ],
)
def test_equal_values_in_other_units_are_not_flagged(
    requested: str, effective: str, *, expected: bool
) -> None:
    assert is_same_value(requested, effective) is expected


def test_durability_is_judged_by_what_was_in_force() -> None:
    base = replace(experiment(), settings=(SettingDifference("plan", "fsync", "on", "off"),))
    assert [(v.name, v.unsafe_settings) for v in unsafe_variants(base)] == [("plan", ("fsync=off",))]
    assert unsafe_variants(experiment()) == ()
