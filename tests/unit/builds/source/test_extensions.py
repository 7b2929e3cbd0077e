"""What --extensions names is found, or refused before anything is done."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pgdyno.base.errors import RefusedError, UsageError
from pgdyno.builds.source.extensions import Extensions, parse_extensions, require_modules
from pgdyno.host.files.source_tree import opened_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / "pgvector"
    path.mkdir()
    (path / "Makefile").write_text("EXTENSION = vector\n")
    return path


def test_names_are_modules_and_what_has_a_slash_is_a_directory(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    found = parse_extensions(["pg_trgm", "contrib", str(tree), ".", "pg_trgm", "uuid-ossp"], opened_tree)
    assert found.modules == ("pg_trgm", "contrib", "uuid-ossp")
    assert [(one.name, one.path) for one in found.trees] == [("pgvector", tree)]


def test_a_tree_is_known_by_its_content(tree: Path) -> None:
    content = b"EXTENSION = vector\n"
    expected = hashlib.sha256(b"Makefile\0file\0%d\0%s" % (len(content), content)).hexdigest()
    assert parse_extensions([str(tree)], opened_tree).identity == [["pgvector", expected]]
    (tree / ".git").write_text("not the extension's")
    assert parse_extensions([str(tree)], opened_tree).identity == [["pgvector", expected]]
    (tree / "vector.c").write_text("")
    assert parse_extensions([str(tree)], opened_tree).identity != [["pgvector", expected]]


def test_nothing_is_nothing() -> None:
    assert parse_extensions([], opened_tree) == Extensions()
    assert parse_extensions([], opened_tree).identity == []


def test_what_was_compiled_in_place_is_refused(tree: Path) -> None:
    (tree / "src").mkdir()
    for name in ("vector.so", "src/vector.o"):
        (tree / name).write_text("")
    with pytest.raises(RefusedError) as caught:
        parse_extensions([str(tree)], opened_tree)
    assert str(caught.value) == (
        f'--extensions "{tree}" was compiled in place\n'
        "DETAIL:  found vector.so, src/vector.o: objects of another build would end up in this one\n"
        "HINT:  run make clean there, or name a clean checkout: git worktree add ../clean"
    )


def test_a_directory_without_a_makefile_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        parse_extensions([str(tmp_path)], opened_tree)
    assert str(caught.value) == (
        f'--extensions "{tmp_path}" contains no Makefile\n'
        "DETAIL:  an extension is compiled by the Makefile in its directory, which must include PGXS\n"
        "HINT:  --extensions pg_trgm, --extensions contrib, or --extensions ./pgvector"
    )


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        parse_extensions([f"{tmp_path}/none"], opened_tree)
    assert caught.value.message == f'--extensions "{tmp_path}/none" is not a directory'
    assert caught.value.detail == f"{tmp_path}/none does not exist"


def test_what_is_neither_is_said(tree: Path) -> None:
    with pytest.raises(UsageError, match='"pg trgm" is neither a contrib module nor a directory'):
        parse_extensions(["pg trgm"], opened_tree)
    spaced = tree.rename(tree.with_name("pg vector"))
    with pytest.raises(UsageError, match='make would split the name "pg vector"'):
        parse_extensions([str(spaced)], opened_tree)


def test_two_directories_of_one_name_are_refused(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other/pgvector"
    other.mkdir(parents=True)
    (other / "Makefile").write_text("")
    with pytest.raises(UsageError) as caught:
        parse_extensions([str(tree), str(other)], opened_tree)
    assert caught.value.message == f'--extensions "{other}" has the same name as another extension'
    assert caught.value.detail == f"{tree} is also named pgvector"


def test_a_module_that_a_source_does_not_have_is_named_with_those_that_it_has(tmp_path: Path) -> None:
    for name in ("hstore", "cube"):
        (tmp_path / "contrib" / name).mkdir(parents=True)
        (tmp_path / "contrib" / name / "Makefile").write_text("")
    require_modules(["contrib", "hstore"], tmp_path, "18.6")
    with pytest.raises(UsageError) as caught:
        require_modules(["hstore", "hstre"], tmp_path, "18.6")
    assert str(caught.value) == (
        'PostgreSQL 18.6 has no contrib module "hstre"\n'
        "DETAIL:  it has cube, hstore\n"
        "HINT:  to name a directory, use a slash: --extensions ./hstre"
    )
