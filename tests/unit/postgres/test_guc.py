"""Values with units, as PostgreSQL reads them. Expected values: PostgreSQL 18's own SHOW and pg_settings."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pgdyno.base.errors import SettingError
from pgdyno.postgres.guc import Guc, bytes_of, format_bytes, format_with_unit, normalise


def guc(name: str, vartype: str, unit: str | None = None, **extra: object) -> Guc:
    settings = {
        "setting": "16384",
        "context": "postmaster",
        "source": "default",
        "boot_val": None,
        "reset_val": None,
    } | extra
    return Guc(name=name, vartype=vartype, unit=unit, **settings)  # type: ignore[arg-type]


SHARED_BUFFERS = guc("shared_buffers", "integer", "8kB", min_val="16", max_val="1073741823")


@pytest.mark.parametrize(
    ("value", "unit", "base"),
    [
        ("128MB", "8kB", "16384"),
        ("16384", "8kB", "16384"),
        ("1GB", "MB", "1024"),
        ("1.5GB", "kB", "1572864"),
        ("5min", "s", "300"),
        ("200ms", "ms", "200"),
        ("0x10", None, "16"),
        ("-1", "kB", "-1"),
        (" 2 h ", "min", "120"),
    ],
)
def test_values_are_converted_to_the_base_unit(value: str, unit: str | None, base: str) -> None:
    assert normalise(value, unit) == Decimal(base)


@pytest.mark.parametrize("value", ["", "MB", "1 XB", "1mb", "1s"])
def test_what_postgresql_rejects_is_rejected(value: str) -> None:
    with pytest.raises(SettingError, match=r'invalid value for parameter "shared_buffers"'):
        SHARED_BUFFERS.check(value)


def test_values_out_of_range_are_refused_and_never_clamped() -> None:
    with pytest.raises(SettingError) as caught:
        SHARED_BUFFERS.check("64kB")
    assert str(caught.value) == (
        '64kB is outside the valid range for parameter "shared_buffers"\n'
        "DETAIL:  the server accepts 16 8kB .. 1073741823 8kB"
    )


def test_an_enum_value_that_the_build_does_not_know_is_refused() -> None:
    io_method = guc("io_method", "enum", enumvals=("sync", "worker"))
    with pytest.raises(SettingError) as caught:
        io_method.check("io_uring")
    assert caught.value.detail == "this build supports: sync, worker"
    assert io_method.check("Worker") == "worker"


@pytest.mark.parametrize(("value", "meaning"), [("on", "on"), ("TRUE", "on"), ("0", "off"), ("no", "off")])
def test_booleans_have_many_spellings(value: str, meaning: str) -> None:
    assert guc("jit", "bool").check(value) == meaning


@pytest.mark.parametrize(
    ("setting", "unit", "shown"),
    [
        ("16384", "8kB", "128MB"),
        ("300", "s", "5min"),
        ("1024", "MB", "1GB"),
        ("-1", "kB", "-1"),
        ("4", None, "4"),
    ],
)
def test_values_are_shown_as_show_shows_them(setting: str, unit: str | None, shown: str) -> None:
    assert format_with_unit(setting, unit) == shown


def test_two_spellings_of_a_value_are_equal() -> None:
    assert SHARED_BUFFERS.equals("131072kB")
    assert not SHARED_BUFFERS.equals("129MB")


def test_memory_in_bytes() -> None:
    assert bytes_of("16384", "8kB") == 134217728
    assert format_bytes(134217728) == "128MB"


@pytest.mark.parametrize("value", ["1e999999", "1e400kB", "0x" + "f" * 400, "\u0663"])
def test_a_number_beyond_those_of_the_server_is_refused(value: str) -> None:
    with pytest.raises(SettingError, match=r'^invalid value for parameter "shared_buffers"'):
        SHARED_BUFFERS.check(value)


@pytest.mark.parametrize("setting", ["inf", "nan", "1e999999", "a"])
def test_a_setting_that_is_no_plain_number_is_shown_as_it_is(setting: str) -> None:
    assert format_with_unit(setting, "kB") == setting


def test_limits_that_cannot_be_compared_are_left_to_the_server() -> None:
    assert guc("x.y", "real", min_val="nan", max_val="much").check("5") == "5"


@pytest.mark.parametrize("unit", ["0kB", "9" * 5_000 + "kB"])
def test_a_unit_that_is_none_takes_no_suffix(unit: str) -> None:
    with pytest.raises(SettingError):
        normalise("1kB", unit)
