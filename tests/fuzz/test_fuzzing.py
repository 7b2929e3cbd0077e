"""The runner of the fuzz targets: what it counts, and what it does when an input fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from chores.fuzz import done, summary
from chores.fuzz_programs import WEIGHTS, Program, execute, executed
from tests.fuzz.test_corpora import RUST

LOG = [
    {"target": "a", "language": "Rust", "executions": 1_000, "seconds": 2.0, "failed": None},
    {"target": "b", "language": "Python", "executions": 20, "seconds": 1.0, "failed": "crash-1"},
    {"target": "a", "language": "Rust", "executions": 500, "seconds": 1.0, "failed": None},
]
# What libFuzzer printed: at its end, and where an input has failed before.
ENDED = "#1024\tpulse  cov: 5\n#2000\tDONE   cov: 5\nstat::number_of_executed_units: 2000\nstat::x: 10\n"
FAILED = "#2\tINITED cov: 5\n#512\tpulse  cov: 5\n ERROR: libFuzzer: deadly signal\n"


def test_executions_are_those_at_the_end_or_else_of_the_last_line() -> None:
    assert (executed(ENDED), executed(FAILED), executed("")) == (2000, 512, 0)


def test_a_target_is_done_when_it_has_had_its_executions_or_an_input_has_failed() -> None:
    assert (done(LOG, "a"), done(LOG, "b"), done(LOG, "c")) == (1_500, sys.maxsize, 0)


def test_the_summary_adds_up_the_runs_of_a_target() -> None:
    assert summary(LOG, "ab12").splitlines() == [
        "| language | target | executions | seconds | failed |",
        "|---|---|---:|---:|---:|",
        "| Rust | a | 1,500 | 3 | 0 |",
        "| Python | b | 20 | 1 | 1 |",
        "|  | all | 1,520 | 4 | 1 |",
        "",
        "SHA-256 of the log: ab12",
    ]


def test_every_target_of_the_driver_has_a_corpus_and_a_program() -> None:
    targets = {path.stem for path in (RUST.parent / "fuzz_targets").glob("*.rs")}
    assert targets == {path.name for path in RUST.iterdir()} == WEIGHTS.keys()


def test_a_target_runs_under_atheris_and_tells_its_executions(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed, which has wheels for Linux on x86-64")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    program = Program(
        "quantity", "Python", (sys.executable, "-m", "chores.fuzz_target", "quantity"), corpus, 1
    )
    run = execute(program, 300, 250, tmp_path)
    assert (run.failed, run.is_interrupted) == (None, False), run.said
    assert run.executions >= 300


def test_an_input_that_fails_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed, which has wheels for Linux on x86-64")
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import sys, atheris\n"
        "def check(data):\n"
        "    if data == b'bad':\n"
        "        raise KeyError('planted')\n"
        "atheris.Setup(sys.argv, check)\n"
        "atheris.Fuzz()\n"
    )
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "1").write_bytes(b"bad")
    run = execute(
        Program("planted", "Python", (sys.executable, str(planted)), corpus, 1), 1_000, 250, tmp_path
    )
    assert run.failed
    assert Path(run.failed).read_bytes() == b"bad"
    assert "planted" in run.said
