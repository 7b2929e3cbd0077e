"""A manifest says what it was written with, and a damaged one is unknown."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from pgdyno.base.facts import Unknown
from pgdyno.builds.product.manifest import (
    FILE,
    AppliedPatch,
    Manifest,
    Optimised,
    Patched,
    Trained,
    dump_manifest,
    parse_manifest,
    read_manifest,
)

MANIFEST = Manifest(
    name="source-17",
    server_version="17.11",
    package="postgresql-17",
    package_version="17.11-0+deb13u1",
    suite="trixie",
    tarball="postgresql-17_17.11.orig.tar.bz2",
    tarball_sha256="dd" * 32,
    unpacked="tar",
    compiler="gcc (Debian 12.2.0-14) 12.2.0",
    configure=("--with-icu", "--with-lz4", "CC=gcc", "CFLAGS=-O2 -fno-omit-frame-pointer"),
    cflags="-Wall -O2 -fno-omit-frame-pointer",
    extensions=("pg_prewarm",),
    notes=(),
    build_s=340.5,
    installed_at="2026-11-21T11:00:00+00:00",
)

FROM_NO_ARCHIVE = {"package": "", "package_version": "", "suite": ""}
OPTIMISED = Optimised(
    source="debian:18",
    recipe="lto+pgo",
    target="native",
    common_flags=("-O3", "-march=native"),
    other_flags=(("-funroll-loops", 2),),
    linking_flags=("-pie",),
    objects=850,
    training=(Trained("pgbench-tpcb", 40.0),),
    reached="4012 functions",
    text_bytes=8_000_000,
)


def test_what_is_written_is_read() -> None:
    for manifest in (MANIFEST, dataclasses.replace(MANIFEST, optimised=OPTIMISED)):
        assert parse_manifest(dump_manifest(manifest)) == manifest


def test_the_document_has_a_schema_version_and_every_member() -> None:
    document = json.loads(dump_manifest(MANIFEST))
    assert document["schema_version"] == 1
    assert set(document) == {"schema_version", *(field.name for field in dataclasses.fields(Manifest))}


def test_the_recipe_was_called_profile_in_older_manifests() -> None:
    manifest = dataclasses.replace(MANIFEST, optimised=OPTIMISED)
    document = json.loads(dump_manifest(manifest))
    older = {
        ("profile" if name == "recipe" else name): value for name, value in document["optimised"].items()
    }
    assert "recipe" not in older
    assert parse_manifest(json.dumps({**document, "optimised": older})) == manifest


def test_members_of_later_versions_are_ignored() -> None:
    document = {**json.loads(dump_manifest(MANIFEST)), "dreams": ["x"]}
    assert parse_manifest(json.dumps(document)) == MANIFEST


@pytest.mark.parametrize(
    ("member", "value", "named"),
    [
        ("configure", "--with-icu", "configure"),
        ("build_s", "long", "build_s"),
        ("notes", [1], "notes.0"),
        ("suite", None, "suite"),
        ("optimised", {"source": "debian:18"}, "optimised.recipe"),
    ],
)
def test_a_member_that_is_wrong_is_named(member: str, value: object, named: str) -> None:
    document = {**json.loads(dump_manifest(MANIFEST)), member: value}
    assert parse_manifest(json.dumps(document)) == Unknown(f'its member "{named}" is missing or wrong')


@pytest.mark.parametrize("text", ["", "[]", '{"schema_version": 2}', "\x00"])
def test_other_texts_are_no_manifests(text: str) -> None:
    assert isinstance(parse_manifest(text), Unknown)


def test_a_prefix_that_pgdyno_did_not_build_has_none(tmp_path: Path) -> None:
    assert read_manifest(tmp_path).value == Unknown("not built by pgdyno")


def test_the_manifest_of_a_prefix_is_a_file_in_it(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(dump_manifest(MANIFEST))
    assert read_manifest(tmp_path).value == MANIFEST


def test_the_summary_has_what_tells_builds_apart() -> None:
    assert MANIFEST.summary == (
        "trixie 17.11-0+deb13u1, gcc (Debian 12.2.0-14) 12.2.0, -O2 -fno-omit-frame-pointer, "
        "--with-icu --with-lz4"
    )


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        ({}, "trixie 17.11-0+deb13u1"),
        ({**FROM_NO_ARCHIVE, "tarball": "pg.tar.bz2"}, "pg.tar.bz2"),
        ({**FROM_NO_ARCHIVE, "tarball": ""}, "~/src/postgresql"),
    ],
    ids=["package", "tarball", "tree"],
)
def test_the_summary_of_an_optimised_build_has_its_recipe_and_where_it_came_from(
    source: dict[str, str], origin: str
) -> None:
    optimised = dataclasses.replace(OPTIMISED, source="~/src/postgresql")
    configure = ("--without-icu", "CC=gcc", "CFLAGS=-O3 -march=native")
    found = dataclasses.replace(MANIFEST, configure=configure, optimised=optimised, **source)  # type: ignore[arg-type]
    assert found.summary == f"{origin}, lto+pgo, gcc (Debian 12.2.0-14) 12.2.0, -O3 -march=native"


def test_a_patched_build_says_so_in_its_summary() -> None:
    patches = (AppliedPatch("send-buffer", "ab"), AppliedPatch("no-failing-recv", "cd"))
    optimised = dataclasses.replace(
        OPTIMISED, recipe="lto+pgo+patched", patched=Patched(patches, ("auto_explain", "plpgsql"))
    )
    found = dataclasses.replace(MANIFEST, configure=(), optimised=optimised)
    assert found.summary == (
        "trixie 17.11-0+deb13u1, lto+pgo+patched (send-buffer, no-failing-recv), "
        "gcc (Debian 12.2.0-14) 12.2.0"
    )
    assert parse_manifest(dump_manifest(found)) == found


@pytest.mark.parametrize("number", ["NaN", "1e999"])
def test_a_number_that_json_has_not_is_damage(number: str) -> None:
    text = dump_manifest(MANIFEST).replace("340.5", number)
    assert parse_manifest(text) == Unknown(f"not a JSON document: {number} is not a JSON number")


def test_a_manifest_that_nests_too_deep_is_damage() -> None:
    assert isinstance(parse_manifest("[" * 100_000), Unknown)
