"""Modules of contrib and trees of others are built with the program, and installed with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.integration.builds.small_tree import VERIFIED, build, request

from pgdyno.base.errors import InstallationError, UsageError
from pgdyno.builds.build_request import BuildRequest
from pgdyno.builds.product.manifest import Verified
from pgdyno.builds.verifying.verification import Candidate
from pgdyno.postgres.process.local_machine import workspace

CONTRIB = "SUBDIRS = cube earthdistance amcheck\n"
PG_CONFIG_OF_TREES = """\
#!/bin/sh
case $1 in --version) echo PostgreSQL 18.6 ;; --pkglibdir) echo "${0%/*}/../lib" ;; *) echo -O3 ;; esac
"""
EXTENSION = """\
all: vector.so
vector.so: vector.c
\tgcc -shared -fPIC $(PROFILE) -o vector.so vector.c
install: all
\tmkdir -p $$($(PG_CONFIG) --pkglibdir)
\tcp vector.so $$($(PG_CONFIG) --pkglibdir)/
clean:
\trm -f vector.so
"""


@pytest.fixture
def vector(tmp_path: Path, tree: Path) -> Path:
    """An extension's tree, and a source that has three modules besides its own."""
    (tree / "pg_config").write_text(PG_CONFIG_OF_TREES)
    (tree / "contrib/Makefile").write_text(CONTRIB)
    for name, needed in (("cube", ""), ("earthdistance", "contrib/cube"), ("hstore", "")):
        (tree / "contrib" / name).mkdir()
        (tree / "contrib" / name / "Makefile").write_text(
            f"EXTRA_INSTALL = {needed}\nREGRESS = {name}\nall install:\n\t@echo made {name}\n"
        )
    path = tmp_path / "vector"
    path.mkdir()
    (path / "Makefile").write_text(EXTENSION)
    (path / "vector.c").write_text("int vector(void) { return 1; }\n")
    return path


def with_extensions(tree: Path, *extensions: str) -> BuildRequest:
    return replace(request(tree, "o2"), extensions=extensions)


ALWAYS = ("pg_stat_statements", "pg_prewarm", "btree_gin", "pgstattuple", "amcheck", "pgcrypto")


@pytest.mark.parametrize(
    ("asked", "modules"),
    [
        ("earthdistance", ("cube", "earthdistance")),
        ("hstore", ("hstore",)),
        ("contrib", ("cube", "earthdistance")),
    ],
)
def test_modules_are_built_with_what_they_need_before_those_that_every_build_has(
    asked: str, modules: tuple[str, ...], tree: Path, vector: Path
) -> None:
    tested: list[tuple[str, ...]] = []

    def remember(subject: Candidate, *_: object) -> Verified:
        tested.append(subject.extensions)
        return VERIFIED

    manifest = build(with_extensions(tree, asked, str(vector)), Remembered(), verify=remember)
    assert manifest.extensions[: len(modules)] == modules
    assert set(manifest.extensions) == {*modules, *ALWAYS, "vector"}
    assert tested == [(*modules, "pg_stat_statements")]  # no other one has tests in this tree


def test_a_tree_is_installed_with_what_it_was_built_against(tree: Path, vector: Path) -> None:
    manifest = build(with_extensions(tree, str(vector)), Remembered())
    assert (workspace().servers() / manifest.name / "lib/vector.so").is_file()
    assert manifest.notes[-1].startswith(f"vector is from {vector}, sha256 ")
    assert sorted(path.name for path in vector.iterdir()) == ["Makefile", "vector.c"]


def test_other_extensions_are_another_build_and_none_are_the_same(tree: Path, vector: Path) -> None:
    names = [
        build(with_extensions(tree, *one), Remembered()).name for one in ((), ("hstore",), (str(vector),))
    ]
    (vector / "vector.c").write_text("int vector(void) { return 2; }\n")
    names.append(build(with_extensions(tree, str(vector)), Remembered()).name)
    assert len(set(names)) == 4


def test_the_plain_build_does_without_extensions(tree: Path, vector: Path, plain: str) -> None:
    said = Remembered()
    build(replace(request(tree, "lto"), extensions=(str(vector),)), said)
    assert f"reference for verification: {plain}, a baseline build of the same source" in said.steps


def test_an_extension_that_does_not_compile_says_so_in_the_compilers_words(tree: Path, vector: Path) -> None:
    (vector / "vector.c").write_text("int vector(void) { return nothing; }\n")
    with pytest.raises(InstallationError) as caught:
        build(with_extensions(tree, str(vector)), Remembered())
    assert caught.value.message == 'building the extension vector: "make" failed with status 2'
    assert "nothing" in (caught.value.detail or "")


def test_a_module_that_is_none_leaves_nothing_behind(tree: Path, vector: Path, home: Path) -> None:
    with pytest.raises(UsageError, match='has no contrib module "hstre"'):
        build(with_extensions(tree, "hstre", str(vector)), Remembered())
    assert list((home / "builds").glob("built-*")) == []
