"""What variants of a bundled study may set, and which of it a server is too old for."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from tests.fix_home import name_servers

from pgdyno.base.errors import DurabilityError
from pgdyno.model.experiments.study import Study, cross
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.installation import Installation
from pgdyno.studies.variant_settings import leave_out_unknown, require_preset_durability

PRESET = {"synchronous_commit": "off", "vacuum_buffer_usage_limit": "256MB", "jit": "off"}


def study_of(*variants: Variant) -> Study:
    return Study(name="insert-benchmark", question="?", variants=variants, workloads=("w",), notes=("first",))


def installation(major: int) -> Installation:
    return Installation(Path("/nowhere"), f"{major}.1", major, "some")


@pytest.fixture
def two_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers ``source-17`` and ``source-18``."""

    def found(name: str) -> Installation:
        return installation(int(name.removeprefix("source-")))

    name_servers(monkeypatch, found)


def test_a_factor_wins_over_the_preset() -> None:
    variants = cross({"JIT": ["on", "off"]}, Variant("default", PRESET))
    assert [variant.settings["jit"] for variant in variants] == ["on", "off"]
    assert {variant.settings["vacuum_buffer_usage_limit"] for variant in variants} == {"256MB"}


def test_the_presets_own_unsafe_setting_is_allowed_also_beside_a_safe_one() -> None:
    variants = cross({"synchronous_commit": ["off", "on"]}, Variant("default", PRESET))
    with does_not_raise():
        require_preset_durability(variants, PRESET)


def test_what_else_could_lose_data_is_refused_beside_a_published_preset() -> None:
    variants = cross({"fsync": ["on", "off"]}, Variant("default", PRESET))
    with pytest.raises(DurabilityError) as caught:
        require_preset_durability(variants, PRESET)
    assert caught.value.message == 'variant "fsync.off" is not durable: fsync=off'


def test_without_a_preset_every_unsafe_setting_is_refused() -> None:
    with pytest.raises(DurabilityError):
        require_preset_durability((Variant("fast", {"synchronous_commit": "off"}),), {})


def test_a_presets_setting_that_came_with_16_is_left_out_on_15_with_a_note() -> None:
    found = leave_out_unknown(study_of(Variant("default", PRESET)), PRESET, {}, installation(15))
    assert found.variants == (Variant("default", {"synchronous_commit": "off", "jit": "off"}),)
    assert found.notes == (
        "first",
        "left out on PostgreSQL 15, which does not have it: vacuum_buffer_usage_limit=256MB",
    )


def test_nothing_is_left_out_on_a_server_that_knows_all() -> None:
    asked = study_of(Variant("default", PRESET))
    assert leave_out_unknown(asked, PRESET, {}, installation(16)) == asked


def test_a_factor_that_no_server_knows_is_left_to_the_server_to_refuse() -> None:
    factors = {"io_method": ["sync", "worker"]}
    asked = study_of(*cross(factors, Variant("default", PRESET)))
    assert leave_out_unknown(asked, PRESET, factors, installation(17)) == asked


@pytest.mark.usefixtures("two_servers")
@pytest.mark.parametrize("names", [("server", "IO_method"), ("IO_method", "server")])
def test_a_server_without_the_factors_setting_has_one_variant_for_all_its_values(
    names: tuple[str, str],
) -> None:
    levels = {"server": ["source-17", "source-18"], "IO_method": ["sync", "worker", "io_uring"]}
    factors = {name: levels[name] for name in names}
    found = leave_out_unknown(study_of(*cross(factors)), (), factors, None)
    assert found.variants[0] == Variant("source-17", {}, "source-17")
    assert [(variant.server, variant.settings["io_method"]) for variant in found.variants[1:]] == [
        ("source-18", "sync"),
        ("source-18", "worker"),
        ("source-18", "io_uring"),
    ]
    assert found.notes == ("first", "left out on PostgreSQL 17, which does not have it: io_method")
