"""Bundles: equal contents give equal bytes, and every damage to a file in one is named."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.fix_bundle import DOCUMENT, FILES, checked, repacked
from tests.golden.synthetic import experiment

from pgdyno.base.errors import StorageError
from pgdyno.store.bundle import Verification, check_bundle, pack_bundle, verified_lines
from pgdyno.store.documents import dump_experiment


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "bundle.zip"
    path.write_bytes(pack_bundle("pgdyno-x", FILES))
    return path


def test_intact_bundle_has_no_problems_and_gives_the_experiment(bundle: Path) -> None:
    found = check_bundle(bundle)
    assert found.problems == ()
    assert found.experiment == experiment()
    assert [file.name for file in found.files] == [
        *("README.txt", "experiment.json", "report.html", "SHA256SUMS")
    ]


def test_equal_contents_give_equal_bytes_in_any_order() -> None:
    assert pack_bundle("x", FILES) == pack_bundle("x", dict(reversed(FILES.items())))


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_checksums_can_be_checked_without_pgdyno(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"],
        cwd=tmp_path / "pgdyno-x",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "README.txt: OK\nexperiment.json: OK\nreport.html: OK\n"


def test_changed_file_is_named_with_both_checksums(bundle: Path) -> None:
    found = repacked(bundle, {"report.html": b"<p>better</p>"})
    before = hashlib.sha256(b"<p>report</p>").hexdigest()
    after = hashlib.sha256(b"<p>better</p>").hexdigest()
    assert found.problems == (f"report.html was changed: its SHA-256 is {after}, SHA256SUMS has {before}",)


def test_missing_and_added_files_are_named(bundle: Path) -> None:
    found = repacked(bundle, {"report.html": None, "extra.sh": b"rm"})
    assert found.problems == ("report.html is missing", "extra.sh is not listed in SHA256SUMS")


def test_missing_list_of_checksums_is_a_problem(bundle: Path) -> None:
    assert repacked(bundle, {"SHA256SUMS": None}).problems == ("SHA256SUMS is missing",)


def test_line_that_is_no_checksum_is_named(bundle: Path) -> None:
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in FILES.items())
    found = repacked(bundle, {"SHA256SUMS": (sums + "nonsense\n").encode()})
    assert found.problems == ("line 4 of SHA256SUMS is not a checksum and a name",)


def test_list_of_checksums_that_was_made_to_fill_the_terminal_is_not_read(bundle: Path) -> None:
    few = repacked(bundle, {"SHA256SUMS": b"\n" * 100})
    assert few.problems == (
        *(f"line {number} of SHA256SUMS is not a checksum and a name" for number in range(1, 9)),
        "and 95 more",  # 92 lines, and three files that are not listed
    )
    many = repacked(bundle, {"SHA256SUMS": b"\n" * (16 << 10 | 1)})
    assert many.problems == ("SHA256SUMS cannot be read, or has more than 16384 bytes",)
    signed = repacked(bundle, {"SHA256SUMS.sig": b"\n" * (16 << 10 | 1)})
    assert signed.problems[-1] == "SHA256SUMS.sig cannot be checked"


def test_broken_json_is_named_by_line_and_column(tmp_path: Path) -> None:
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": b'{\n "a": }'}))
    assert found.experiment is None
    assert found.problems == ("experiment.json is not JSON: line 2, column 7: Expecting value",)


def test_wrong_members_are_named_by_their_path(tmp_path: Path) -> None:
    document = {**dump_experiment(experiment()), "blocks": 3}
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": json.dumps(document).encode()}))
    assert found.problems == (
        "experiment.json: the document is not an experiment",
        "experiment.json: blocks: input should be a valid tuple",
    )


def test_bundle_of_a_newer_pgdyno_is_named_as_such(tmp_path: Path) -> None:
    document = {**dump_experiment(experiment()), "schema_version": 2}
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": json.dumps(document).encode()}))
    assert found.problems == (
        "experiment.json: the document has schema version 2",
        "experiment.json: this pgdyno reads versions up to 1",
    )
    assert found.advice == "upgrade pgdyno: pip install --upgrade pgdyno"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": "\\ud800"}', "'utf-8' codec can't encode character '\\ud800'"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number has 5000 digits"),
        (b"[" * 200_000, "maximum recursion depth exceeded"),
    ],
)
def test_json_that_no_program_should_be_given_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (problem,) = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": content})).problems
    assert problem.startswith(f"experiment.json cannot be read: {why}")


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"[]", "experiment.json is not a JSON object"), (b"\xff\xfe", "experiment.json is not JSON: line 1")],
)
def test_other_contents_are_not_taken_for_an_experiment(tmp_path: Path, content: bytes, problem: str) -> None:
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"experiment.json": content}))
    assert found.problems[0].startswith(problem)


def test_bundle_without_an_experiment_is_not_intact(tmp_path: Path) -> None:
    found = checked(tmp_path / "b.zip", pack_bundle("x", {"report.html": b""}))
    assert found.problems == ("experiment.json is missing or too large",)


def test_a_file_that_was_exchanged_after_it_was_checked_is_not_read(bundle: Path) -> None:
    found = check_bundle(bundle)
    assert read(bundle, found, "README.txt") == ["read me\n"]
    assert verified_lines(bundle, found, "slices.csv") is None
    bundle.write_bytes(pack_bundle("pgdyno-x", {**FILES, "README.txt": b"other\n"}))
    with pytest.raises(StorageError) as caught:
        read(bundle, found, "README.txt")
    assert str(caught.value) == f'"{bundle}" was changed while it was read\nDETAIL:  README.txt differs'
    bundle.write_bytes(pack_bundle("pgdyno-x", {"experiment.json": DOCUMENT}))
    with pytest.raises(StorageError, match="was changed while it was read"):
        read(bundle, found, "README.txt")


def read(path: Path, found: Verification, key: str) -> list[str]:
    lines = verified_lines(path, found, key)
    assert lines is not None
    return list(lines)


@pytest.mark.parametrize(
    ("content", "line"), [(b"short\n" + b"x" * (256 << 10) + b"\n", 2), (b"a\n" * 1_000_001, 1_000_001)]
)
def test_series_of_endless_lines_are_not_read(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "b.zip"
    found = stored(path, {"experiment.json": DOCUMENT, "slices.csv": content})
    with pytest.raises(StorageError) as caught:
        read(path, found, "slices.csv")
    assert caught.value.message == f"line {line} of slices.csv exceeds a limit"
    assert caught.value.detail == "a file may have 1000000 lines, each of up to 262144 bytes"


def stored(path: Path, files: Mapping[str, bytes]) -> Verification:
    """Check a bundle that is not compressed."""
    with zipfile.ZipFile(path, "w") as archive:
        sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
        for name, content in {**files, "SHA256SUMS": sums.encode()}.items():
            archive.writestr(f"x/{name}", content)
    return check_bundle(path)


def test_a_document_has_a_limit_however_it_is_packed(tmp_path: Path) -> None:
    found = stored(tmp_path / "b.zip", {"experiment.json": DOCUMENT + b" " * (33 << 20)})
    assert found.problems == ("experiment.json is missing or too large",)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        check_bundle(tmp_path / "b.zip")
    assert str(caught.value) == f'could not open "{tmp_path}/b.zip"\nDETAIL:  No such file or directory'
