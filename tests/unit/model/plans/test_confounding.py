"""Builds compared by what their own pg_config said: the wheel, Debian's package, and two builds of pgdyno."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import ServerError
from pgdyno.model.plans.confounding import Build, build_differences, is_confounded, parse_build

CAPTURED = Path(__file__).parents[3] / "fixtures/pg_config"
GCC_12 = "PostgreSQL 17.11 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit"
GCC_14 = "PostgreSQL 18.6 on x86_64-pc-linux-gnu, compiled by gcc (Debian 14.2.0-19) 14.2.0, 64-bit"


def text(name: str) -> str:
    return (CAPTURED / f"{name}.txt").read_text()


def captured(name: str, version_text: str = "", *, has_checksums: bool | None = None) -> Build:
    return parse_build(name, text(name), version_text=version_text, has_checksums=has_checksums)


def sentences(one: Build, other: Build, *, is_confounder: bool) -> list[str]:
    return [d.sentence for d in build_differences(one, other) if d.is_confounder == is_confounder]


def test_a_build_is_read_from_pg_config() -> None:
    build = captured("debian-15")
    assert (build.version, build.major, build.vendor) == ("15.18", 15, "Debian 15.18-0+deb12u1")
    assert build.options is not None
    assert build.options["llvm"] == "yes"
    assert build.options["rpath"] == "no"


def test_builds_with_equal_flags_are_not_confounded_and_io_uring_is_listed() -> None:
    one, other = captured("source-17", GCC_12), captured("source-18", GCC_12)
    assert sentences(one, other, is_confounder=True) == []
    assert sentences(one, other, is_confounder=False) == [
        "only source-18 has io_uring, which exists from PostgreSQL 18 on"
    ]
    assert not is_confounded(build_differences(one, other))


def test_patches_are_a_difference() -> None:
    configure = "'PGDYNO_PATCHES=send-buffer,no-failing-recv' '--with-lz4'"
    plain = text("source-18")
    patched = plain.replace("'--with-lz4'", configure)
    assert configure in patched
    one, other = captured("source-18"), parse_build("built-1", patched)
    assert sentences(one, other, is_confounder=True) == [
        "configure option patches: not given for source-18, send-buffer, no-failing-recv for built-1"
    ]
    assert not is_confounded(build_differences(other, other))


def test_the_wheel_against_debian_differs_in_everything() -> None:
    assert sentences(captured("embedded-18"), captured("debian-15"), is_confounder=True) == [
        (
            "only debian-15 was compiled and linked with -fstack-protector-strong -fno-omit-frame-pointer "
            "-D_FORTIFY_SOURCE=2 -Wl,-z,relro -Wl,-z,now"
        ),
        "debian-15 is built with SSL, embedded-18 without",
        "debian-15 is built with ICU, embedded-18 without",
        "debian-15 is built with lz4 compression, embedded-18 without",
        "debian-15 is built with zstd compression, embedded-18 without",
        "debian-15 is built with LLVM JIT compilation, embedded-18 without",
        "debian-15 is built with DTrace probes, embedded-18 without",
        "debian-15 is a distribution's package (Debian 15.18-0+deb12u1), which may carry patches",
    ]


def test_the_wheel_against_a_source_build_of_the_same_version_differs_in_io_uring_too() -> None:
    found = sentences(captured("embedded-18"), captured("source-18"), is_confounder=True)
    assert "source-18 is built with io_uring, embedded-18 without" in found
    assert "only source-18 was compiled and linked with -fno-omit-frame-pointer" in found


def test_a_build_does_not_differ_from_itself() -> None:
    for name in ("debian-15", "embedded-18", "source-17", "source-18"):
        assert build_differences(captured(name), captured(name)) == ()


def test_compilers_are_compared_with_their_versions_where_both_are_known() -> None:
    assert sentences(captured("source-17", GCC_12), captured("source-18", GCC_14), is_confounder=True) == [
        (
            "source-17 was compiled with gcc (Debian 12.2.0-14+deb12u1) 12.2.0, "
            "source-18 with gcc (Debian 14.2.0-19) 14.2.0"
        )
    ]
    assert sentences(captured("source-17", GCC_12), captured("source-18"), is_confounder=True) == []


def test_the_last_level_of_optimisation_counts() -> None:
    other = text("source-17").replace("-O2 -fno-omit", "-O2 -O3 -fno-omit")
    assert sentences(captured("source-17"), parse_build("fast", other), is_confounder=True) == [
        "source-17 was optimised with -O2, fast with -O3"
    ]


def test_checksums_confound_where_both_are_known() -> None:
    one = captured("source-17", has_checksums=False)
    assert sentences(one, captured("source-18", has_checksums=True), is_confounder=True) == [
        "the data of source-18 have checksums, those of source-17 have none"
    ]
    assert sentences(one, captured("source-18"), is_confounder=True) == []


def test_options_nobody_foresaw_confound() -> None:
    other = text("source-17").replace("'--with-icu'", "'--with-icu' '--with-blocksize=16'")
    assert sentences(captured("source-17"), parse_build("wide", other), is_confounder=True) == [
        "configure option blocksize: not given for source-17, 16 for wide"
    ]


def test_icu_is_built_in_from_16_on_unless_it_is_switched_off() -> None:
    plain = text("source-17").replace("'--with-icu' ", "")
    assert sentences(captured("source-17"), parse_build("plain", plain), is_confounder=True) == []
    without = text("source-17").replace("'--with-icu'", "'--without-icu'")
    assert sentences(captured("source-17"), parse_build("plain", without), is_confounder=True) == [
        "source-17 is built with ICU, plain without"
    ]


def test_a_build_without_a_record_of_its_options_is_confounded() -> None:
    lines = [
        "CONFIGURE = not recorded" if line.startswith("CONFIGURE") else line
        for line in text("source-18").splitlines()
    ]
    assert sentences(captured("source-17"), parse_build("meson", "\n".join(lines)), is_confounder=True) == [
        "meson does not record the options it was built with"
    ]


def test_other_texts_are_refused() -> None:
    with pytest.raises(ServerError) as caught:
        parse_build("x", "pg_config: not found")
    assert caught.value.message == 'pg_config of "x" has no VERSION'


@given(st.text())
def test_flags_of_any_text_can_be_compared(flags: str) -> None:
    line = flags.replace("\n", " ")
    odd = parse_build("odd", f"CONFIGURE = '--with-icu' {line}\nCFLAGS = {line}\nVERSION = PostgreSQL 18.6")
    assert build_differences(odd, odd) == ()
    build_differences(odd, captured("source-18"))
