"""Builds of PostgreSQL for tests that only look at them: a manifest, and a program that knows its version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.builds.product.manifest import FILE, Manifest, Optimised, Passed, Trained, Verified, dump_manifest
from pgdyno.postgres.process import registry
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.workspace import Workspace

POSTGRES = "#!/bin/sh\necho 'postgres (PostgreSQL) 18.6'\n"
LICENCE = """PostgreSQL Database Management System
(also known as Postgres, formerly known as Postgres95)

Portions Copyright (c) 1996-2025, PostgreSQL Global Development Group

Portions Copyright (c) 1994, The Regents of the University of California

Permission to use is hereby granted.

THERE IS NO WARRANTY.
"""
"""As psql has it, but shorter."""
MANIFEST = Manifest(
    name="built-00000000000a", server_version="18.6", package="", package_version="", suite="", tarball="",
    tarball_sha256="ab", unpacked="", compiler="clang 19", configure=(), cflags="", extensions=(), notes=(),
    build_s=1.0, installed_at="2026-11-22T00:00:00+00:00",
    optimised=Optimised(
        source="debian:18", recipe="lto+pgo", target="native", common_flags=(), other_flags=(),
        linking_flags=(), objects=1, training=(Trained("sysbench-read-only", 40.0),), reached="",
        text_bytes=1,
    ),
    verified=Verified((Passed("regress", 231), Passed("isolation", 122)), "source-18", 63_332, 40, 205.0),
)  # fmt: skip


@pytest.fixture
def builds_place(own_home: Path) -> Workspace:
    """A workspace of the test's own, also for what asks for the user's."""
    return Workspace(own_home, caller())


@pytest.fixture
def packaged_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory where this test's host has builds that packages have brought."""
    directory = tmp_path / "usr/lib/pgdyno"
    directory.mkdir(parents=True)
    monkeypatch.setattr(registry, "PACKAGED", str(directory))
    return directory


@pytest.fixture
def install_build(builds_place: Workspace) -> Callable[[Manifest], Path]:
    """Put a build with a manifest into the workspace, and return its prefix."""

    def installed(manifest: Manifest) -> Path:
        return put_build(builds_place.servers(), manifest)

    return installed


def put_build(directory: Path, manifest: Manifest) -> Path:
    """Put a build with a manifest into a directory, and return its prefix."""
    prefix = directory / manifest.name
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/postgres").write_text(POSTGRES)
    (prefix / "bin/postgres").chmod(0o755)
    (prefix / FILE).write_text(dump_manifest(manifest))
    return prefix
