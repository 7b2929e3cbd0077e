"""What is taken over of another installation, and what of that is said."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from pgdyno.builds.spec.features import Features, take_over

DEBIAN = Path(__file__).parents[3] / "fixtures/pg_config/debian-15.txt"


def of_debian() -> Features:
    found = re.search("^CONFIGURE = (.*)$", DEBIAN.read_text(), re.MULTILINE)
    assert found is not None
    return take_over(shlex.split(found[1]))


def test_debians_features_are_taken_over_in_order_and_nothing_else() -> None:
    assert of_debian().options == (
        "--with-tcl", "--with-perl", "--with-python", "--with-pam", "--with-ssl=openssl", "--with-libxml",
        "--with-libxslt", "--enable-nls", "--with-uuid=e2fs", "--with-gssapi", "--with-ldap",
        "--with-pgport=5432", "--with-system-tzdata=/usr/share/zoneinfo", "PYTHON=/usr/bin/python3",
        "--with-icu", "--with-lz4", "--with-zstd", "--with-systemd", "--with-selinux",
    )  # fmt: skip


def test_what_somebody_could_miss_is_said() -> None:
    jit, package, mistakes = of_debian().left_out
    assert jit == (
        "without JIT: --with-llvm is not inherited, because JIT code is compiled separately "
        "from the trained and verified program; jit=on has no effect"
    )
    assert package == "without --with-extra-version: it would name a package that this build is not from"
    assert mistakes == (
        "without --enable-debug, --enable-dtrace, --enable-tap-tests: debugging options are not inherited"
    )


@pytest.mark.parametrize(
    "option",
    [
        "--with-blocksize=16",
        "--with-segsize=2",
        "--with-segsize-blocks=6",
        "--with-wal-blocksize=64",
        "--with-krb-srvnam=POSTGRES",
        "--without-readline",
        "--with-libedit-preferred",
        "--enable-nls=de fr",
        "--disable-float8-byval",
        "--with-liburing",
    ],
)
def test_what_shapes_a_server_is_taken_over_as_it_stands(option: str) -> None:
    assert take_over([option]) == Features((option,))


@pytest.mark.parametrize(
    "argument",
    [
        "--prefix=/usr", "--libdir=/usr/lib", "--sysconfdir=/etc", "--build=x86_64-linux-gnu",
        "--disable-rpath", "--enable-thread-safety", "--with-gnu-ld", "--with-tclconfig=/usr/lib", "CC=gcc",
        "CFLAGS=-O2", "LDFLAGS=-s", "CLANG=clang-14", "LLVM_CONFIG=llvm-config-14", "build_alias=x86_64",
        "PKG_CONFIG_PATH=/opt/lib", "--disable-debug", "--without-llvm",
    ],
)  # fmt: skip
def test_where_and_how_it_was_made_is_not(argument: str) -> None:
    assert take_over([argument]) == Features(())


def test_libraries_of_other_places_are_taken_from_the_host_and_that_is_said() -> None:
    features = take_over(["--with-includes=/opt/include", "--with-libraries=/opt/lib"])
    assert features.options == ()
    (said,) = features.left_out
    assert said == (
        "without --with-includes=/opt/include, --with-libraries=/opt/lib: this host's library "
        "directories are used"
    )


def test_of_what_is_given_twice_the_last_one_counts() -> None:
    assert take_over(["--with-icu", "--with-lz4", "--without-icu"]).values == {"icu": "no", "lz4": "yes"}


def test_an_interpreter_is_taken_over_with_its_language() -> None:
    assert take_over(["PYTHON=/opt/python3", "PERL=perl", "--with-python", "--without-perl"]).options == (
        "PYTHON=/opt/python3",
        "--with-python",
        "--without-perl",
    )
