"""Which server a faster build may be held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_builds import MANIFEST

from pgdyno.builds.baseline_build import find_baseline_build
from pgdyno.builds.product.manifest import Manifest
from pgdyno.postgres.process.workspace import Workspace

assert MANIFEST.optimised is not None
PLAIN = replace(
    MANIFEST, name="built-0000000000ff", optimised=replace(MANIFEST.optimised, recipe="o2", target=None)
)  # fmt: skip
SOURCE = MANIFEST.tarball_sha256


def found(place: Workspace, *options: str) -> str | None:
    server = find_baseline_build(SOURCE, options, place)
    return None if server is None else server.name


@pytest.mark.parametrize("built", [("--with-icu",), ("--with-icu", "--with-liburing")])
@pytest.mark.parametrize("asked", [("--with-icu",), ("--with-icu", "--with-liburing")])
def test_liburing_makes_no_difference(
    built: tuple[str, ...],
    asked: tuple[str, ...],
    install_build: Callable[[Manifest], Path],
    builds_place: Workspace,
) -> None:
    install_build(replace(PLAIN, configure=(*built, "CFLAGS=-O2")))
    assert found(builds_place, *asked, "CFLAGS=-O3") == PLAIN.name


@pytest.mark.parametrize("asked", ["--without-icu", "--disable-float8-byval", "--enable-nls"])
def test_another_feature_does(
    asked: str, install_build: Callable[[Manifest], Path], builds_place: Workspace
) -> None:
    install_build(replace(PLAIN, configure=("--enable-option-checking=fatal",)))
    assert found(builds_place) == PLAIN.name
    assert found(builds_place, asked) is None
