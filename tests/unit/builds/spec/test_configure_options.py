"""Versions are built alike, and what one cannot have is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.builds.spec.configure_options import (
    DEFAULT_CFLAGS,
    LIBRARIES,
    ConfigureOptions,
    options_like,
    parse_majors,
    plan_options,
)
from pgdyno.builds.spec.features import Features
from pgdyno.builds.spec.foreign import Foreign

ALL_HEADERS = frozenset(one.header for one in LIBRARIES)
LIBURING_ONLY = "--with-liburing"


def options(
    majors: tuple[int, ...] = (17, 18),
    headers: frozenset[str] = ALL_HEADERS,
    *,
    wants_liburing: bool | None = True,
) -> ConfigureOptions:
    return plan_options(majors, headers, "gcc", DEFAULT_CFLAGS, wants_liburing=wants_liburing)


def test_two_versions_differ_in_liburing_alone() -> None:
    older, newer = options().arguments(17), options().arguments(18)
    assert [one for one in newer if one not in older] == [LIBURING_ONLY]
    assert [one for one in older if one not in newer] == []


def test_what_is_left_out_for_another_machine_is_named_by_its_package() -> None:
    foreign = Foreign("aarch64", "aarch64-linux-gnu", "arm64")
    bare = plan_options((18,), (), "gcc", "", wants_liburing=None, foreign=foreign)
    assert bare.left_out[0] == "without readline: libreadline-dev:arm64 is not installed"
    assert bare.left_out[-1] == "without liburing: liburing-dev:arm64 is not installed"


def test_every_option_is_as_configure_has_it() -> None:
    assert options().arguments_for(17, Path("/p")) == (
        "--prefix=/p",
        "--enable-option-checking=fatal",
        "--with-readline",
        "--with-icu",
        "--with-ssl=openssl",
        "--with-lz4",
        "--with-zstd",
        "CC=gcc",
        "CFLAGS=-O2 -fno-omit-frame-pointer",
    )


def test_what_the_host_lacks_is_left_out_for_all_and_noted() -> None:
    bare = options(headers=frozenset(), wants_liburing=False)
    assert bare.arguments(18) == (
        "--enable-option-checking=fatal",
        "--without-readline",
        "--without-icu",
        "CC=gcc",
        "CFLAGS=-O2 -fno-omit-frame-pointer",
    )
    assert bare.notes(18) == (
        "without readline: libreadline-dev is not installed",
        "without ICU: libicu-dev is not installed",
        "without OpenSSL: libssl-dev is not installed",
        "without lz4: liblz4-dev is not installed",
        "without zstd: libzstd-dev is not installed",
    )


def test_an_option_that_one_version_does_not_have_is_left_out_for_the_others_too() -> None:
    mixed = options((14, 17), wants_liburing=False)
    assert "--with-zstd" not in mixed.arguments(17)
    assert mixed.notes(17) == ("without zstd: not every requested version supports it",)


def test_a_version_without_liburing_notes_it() -> None:
    assert options().notes(17) == ("without liburing: supported since PostgreSQL 18",)
    assert options().notes(18) == ()


LIBURING_TOO = ALL_HEADERS | {"liburing.h"}


def test_liburing_that_nobody_insists_on_is_used_where_it_is() -> None:
    assert LIBURING_ONLY in options((18,), LIBURING_TOO, wants_liburing=None).arguments(18)
    without = options((18,), wants_liburing=None)
    assert LIBURING_ONLY not in without.arguments(18)
    assert without.notes(18) == ("without liburing: liburing-dev is not installed",)


def test_liburing_that_an_old_version_cannot_have_is_not_missed() -> None:
    for headers in (ALL_HEADERS, LIBURING_TOO):
        older = options((17,), headers, wants_liburing=None)
        assert LIBURING_ONLY not in older.arguments(17)
        assert older.notes(17) == ()


def test_liburing_that_was_not_asked_for_is_left_out_although_it_is_there() -> None:
    assert options((18,), LIBURING_TOO, wants_liburing=False) == options((18,), wants_liburing=False)


def test_another_installations_features_are_all_that_a_build_like_it_has() -> None:
    features = Features(("--with-ssl=openssl", "--with-perl"), ("without JIT",))
    alike = options_like(features, "clang-19")
    assert alike.arguments(18) == (
        "--enable-option-checking=fatal", "--with-ssl=openssl", "--with-perl", "CC=clang-19", "CFLAGS=",
    )  # fmt: skip
    assert alike.notes(18) == ("without JIT",)
    assert "pgcrypto" in alike.extensions
    assert "pgcrypto" not in options_like(Features(()), "gcc").extensions
    assert options_like(Features(()), "gcc").arguments(18) == (
        "--enable-option-checking=fatal", "CC=gcc", "CFLAGS=",
    )  # fmt: skip


def test_pgcrypto_is_built_with_openssl_only() -> None:
    assert "pgcrypto" in options().extensions
    assert "pgcrypto" not in options(headers=ALL_HEADERS - {"openssl/ssl.h"}).extensions


def test_liburing_for_old_versions_alone_is_a_mistake() -> None:
    with pytest.raises(UsageError) as caught:
        options((15, 17))
    assert str(caught.value) == "--with-liburing needs PostgreSQL 18 or newer\nDETAIL:  requested: 15, 17"


@pytest.mark.parametrize("cflags", ["-O2 $(id)", "-O2; id", "-DX='1'", "-O2\n", "`id`"])
def test_flags_that_a_shell_would_interpret_are_refused(cflags: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_options((17,), (), "gcc", cflags, wants_liburing=False)
    assert caught.value.message == f'--cflags "{cflags}" has characters that make would interpret'


def test_versions_are_a_list_of_majors_without_repeats() -> None:
    assert parse_majors("17, 18,17") == (17, 18)


@pytest.mark.parametrize("wrong", ["", "17.2", "13", "x", "017", "1७"])
def test_anything_else_is_no_version(wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_majors(f"17,{wrong}")
    assert caught.value.message == f'--from-source "17,{wrong}": "{wrong}" is not a major version'
    assert caught.value.hint == "pgdyno server install --from-source 17,18"
