"""What a verification consists of, and that none of it is left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered

from pgdyno.base.errors import InstallationError
from pgdyno.builds.make import Making
from pgdyno.builds.verifying import verification
from pgdyno.builds.verifying.verification import Candidate, _Verifying, verify
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance
from pgdyno.postgres.process.workspace import Workspace

TESTED = Installation(Path("/built/bin"), "18.6", 18, "built-00000000000a")
PLAIN = Installation(Path("/plain/bin"), "18.6", 18, "source-18")
SUBJECT = Candidate(
    TESTED, PLAIN, Making(Path("/tree"), Path("/log"), "PostgreSQL 18.6"), {}, ("pg_prewarm", "btree_gin")
)
OWN_TESTS = [f"PostgreSQL's own tests: {name}" for name in ("regress", "isolation", "btree_gin")]


def names(subject: Candidate, tmp_path: Path) -> list[str]:
    verifying = _Verifying(subject, Workspace(tmp_path, caller()), tmp_path, tmp_path)
    return [check.name for check in verifying._checks()]


def test_a_faster_build_goes_through_all_of_it(tmp_path: Path) -> None:
    assert names(SUBJECT, tmp_path) == [
        "new data directory", *OWN_TESTS,
        "bit-identical results", "data moved both ways", "crashes under load",
    ]  # fmt: skip


def test_a_plain_one_is_compared_with_nothing(tmp_path: Path) -> None:
    assert names(replace(SUBJECT, reference=None), tmp_path) == [
        "new data directory", *OWN_TESTS, "crashes under load",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "host"), [("regress", None), ("btree_gin", "/sockets")])
def test_servers_find_themselves_where_modules_let_them_look(
    name: str, host: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []

    @contextmanager
    def running(server: Instance) -> Iterator[None]:
        seen.append((server.environment or {}).get("PGHOST"))
        yield

    monkeypatch.setattr(Instance, "running", running)
    monkeypatch.setattr(verification, "run_suite", lambda *_: 1)
    verifying = _Verifying(SUBJECT, Workspace(tmp_path, caller()), tmp_path, Path("/sockets"))
    (check,) = (one for one in verifying._checks() if one.name.endswith(f": {name}"))
    check.run(lambda _: None)
    assert seen == [host]


@pytest.mark.parametrize("mark", [b"__gcov_merge_add", b"__llvm_prf_cnts", b"__bolt_instr_data_dump"])
def test_what_still_counts_is_refused_before_anything_is_tried(mark: bytes, tmp_path: Path) -> None:
    (tmp_path / "built/bin").mkdir(parents=True)
    (tmp_path / "built/bin/postgres").write_bytes(b"\x7fELF" + mark)
    subject = replace(SUBJECT, tested=replace(TESTED, bin_directory=tmp_path / "built/bin"))
    progress = Remembered()
    with pytest.raises(InstallationError, match="are still instrumented"):
        verify(subject, Workspace(tmp_path / "home", caller()), progress, lambda _: None)
    assert progress.steps == []
