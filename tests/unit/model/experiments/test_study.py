"""Studies: variants from factors, and names that do not collide."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.study import cross, on_servers, unique_names
from pgdyno.model.variants.variant import Variant


def test_factors_are_crossed_and_the_first_values_are_the_baseline() -> None:
    variants = cross({"shared_buffers": ["128MB", "1GB"], "jit": ["on", "off"]})
    assert [dict(v.settings) for v in variants] == [
        {"shared_buffers": "128MB", "jit": "on"},
        {"shared_buffers": "128MB", "jit": "off"},
        {"shared_buffers": "1GB", "jit": "on"},
        {"shared_buffers": "1GB", "jit": "off"},
    ]
    assert variants[0].name == "shared_buffers.128MB-jit.on"


def test_a_factor_replaces_the_bases_value_however_its_name_is_written() -> None:
    variants = cross({"Work_Mem": ["8MB"]}, Variant("default", {"work_mem": "4MB", "jit": "off"}))
    assert [dict(v.settings) for v in variants] == [{"jit": "off", "work_mem": "8MB"}]


def test_a_factor_without_values_is_refused() -> None:
    with pytest.raises(UsageError, match='factor "jit" has no values'):
        cross({"jit": []})


def test_naming_a_variant_twice_numbers_it() -> None:
    named = unique_names([Variant("default"), Variant("default"), Variant("x")])
    assert [v.name for v in named] == ["default", "default-2", "x"]


def test_variants_of_one_name_on_different_servers_are_told_apart_by_the_server() -> None:
    named = unique_names(
        [
            Variant("default", server="debian-17"),
            Variant("default", server="/opt/pg18/bin"),
            Variant("default", server="/opt/pg18/bin"),
            Variant("default"),
        ]
    )
    assert [v.name for v in named] == ["debian-17-default", "pg18-default", "pg18-default-2", "default"]
    assert [v.server for v in named] == ["debian-17", "/opt/pg18/bin", "/opt/pg18/bin", None]


def test_a_factor_called_server_varies_the_server_and_no_setting() -> None:
    variants = cross({"server": ["source-17", "/opt/pg18"], "jit": ["on", "off"]})
    assert [str(variant) for variant in variants] == [
        "source-17@source-17-jit.on:jit=on",
        "source-17@source-17-jit.off:jit=off",
        "/opt/pg18@pg18-jit.on:jit=on",
        "/opt/pg18@pg18-jit.off:jit=off",
    ]


def test_a_studys_own_variants_run_on_every_server() -> None:
    own = [Variant("sync", {"io_method": "sync"}), Variant("worker", {"io_method": "worker"})]
    assert on_servers(own, ["a", "/opt/b"]) == (
        Variant("sync", {"io_method": "sync"}, "a"),
        Variant("worker", {"io_method": "worker"}, "a"),
        Variant("sync", {"io_method": "sync"}, "/opt/b"),
        Variant("worker", {"io_method": "worker"}, "/opt/b"),
    )


def test_more_combinations_than_can_be_measured_are_refused_before_they_are_made() -> None:
    with pytest.raises(UsageError) as caught:
        cross({f"a{number}": [str(value) for value in range(10)] for number in range(12)})
    assert str(caught.value) == (
        "the factors have 1000000000000 combinations\n"
        "DETAIL:  at most 1000 variants can be compared\n"
        "HINT:  leave out values, or measure one factor after the other"
    )
