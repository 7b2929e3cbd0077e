"""Settings of two servers: compared as the servers write them, weighed by what they change."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.unit.results.machines.test_difference_catalogue import guc, known, on

from pgdyno.model.experiments.experiment import Experiment, SettingDifference
from pgdyno.model.experiments.machine_comparison import Weight
from pgdyno.results.machines.setting_differences import setting_differences


def settings_of(**settings: Mapping[str, object]) -> Experiment:
    return on(server={"settings": settings})


def setting_names(a: Experiment, b: Experiment) -> list[tuple[str, str | None, str | None, Weight]]:
    return [(one.subject, one.a, one.b, one.weight) for one in setting_differences(a, b)]


def test_settings_are_compared_as_the_server_shows_them() -> None:
    a = settings_of(shared_buffers=guc("16384", "8kB"), work_mem=guc("4096", "kB"), jit=guc("on"))
    b = settings_of(shared_buffers=guc("524288", "8kB"), work_mem=guc("4096", "kB"), jit=guc("off"))
    assert setting_names(a, b) == [
        ("jit", "on", "off", Weight.TENS),
        ("shared_buffers", "128MB", "4GB", Weight.TENS),
    ]


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        *(("synchronous_commit", Weight.DECIDES), ("full_page_writes", Weight.DECIDES)),
        *(("debug_assertions", Weight.DECIDES), ("max_wal_size", Weight.TENS), ("io_method", Weight.TENS)),
        *(("enable_seqscan", Weight.TENS), ("random_page_cost", Weight.TENS), ("huge_pages", Weight.TENS)),
        *(("autovacuum", Weight.TENS), ("log_min_duration_statement", Weight.TENS)),
        *(("data_checksums", Weight.FEW), ("track_io_timing", Weight.FEW), ("wal_buffers", Weight.FEW)),
        *(("log_rotation_size", Weight.LITTLE), ("max_connections", Weight.LITTLE)),
        ("a_setting_of_tomorrow", Weight.FEW),
    ],
)
def test_settings_are_weighed_by_what_they_do(name: str, weight: Weight) -> None:
    ((_, _, _, found_weight),) = setting_names(
        settings_of(**{name: guc("1")}), settings_of(**{name: guc("2")})
    )
    assert found_weight is weight


def test_settings_that_say_nothing_or_are_private_are_not_compared() -> None:
    a = settings_of(
        application_name=guc("x", source="client"), cluster_name=guc("********"),
        server_version=guc("18.6"), shared_memory_size=guc("150", "MB"), new_in_18=guc("1"),
    )  # fmt: skip
    b = settings_of(
        application_name=guc("y", source="client"), cluster_name=guc("mine"), server_version=guc("18.7"),
        shared_memory_size=guc("170", "MB"), gone_since_17=guc("1"),
    )  # fmt: skip
    assert setting_names(a, b) == []


def test_settings_that_were_not_recorded_are_unknown() -> None:
    assert setting_names(settings_of(jit=guc("on")), on()) == [("settings", "recorded", None, Weight.DECIDES)]


def test_settings_in_force_for_a_variant_may_differ_though_it_asks_for_the_same() -> None:
    def with_effective(value: str) -> Experiment:
        return on(settings=(SettingDifference("default", "huge_pages_status", None, value),))

    assert ("huge_pages_status in force for default", "on", "off", Weight.TENS) in known(
        with_effective("on"), with_effective("off")
    )
