"""The programs of the fuzz targets, and one run of one of them under libFuzzer."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tests.fuzz.targets import CORPORA, TARGETS

CRATE = Path("driver/fuzz")
WEIGHTS = {
    "answer": 16,
    "end_point": 16,
    "frames": 16,
    "server_error": 16,
    "conninfo": 12,
    "startup": 8,
    "job": 8,
    "session": 4,
    "workload": 3,
}
"""Parts of all executions that a target of the driver gets: more for those that take a few microseconds."""
OPENING_FILES = {
    "postgresql_conf",
    "data_directory",
    "experiment_file",
    "journal",
    "bundle_file",
    "bundle_document",
}
"""Targets of Python that take milliseconds, and get a tenth of what the others do."""
_LIMITS = ("-timeout=10", "-rss_limit_mb=1024", "-max_len=4096", "-print_final_stats=1")
_EXECUTED = re.compile(r"^(?:stat::number_of_executed_units: +|#)([0-9]+)", re.MULTILINE)
_KEPT = re.compile(r"Test unit written to (\S+)")
_INTERRUPTED = (72, -signal.SIGTERM)  # libFuzzer's exit status after SIGTERM, and before it runs


@dataclass(frozen=True)
class Program:
    """A target, how it is started, and its kept inputs."""

    name: str
    language: str
    argv: tuple[str, ...]
    corpus: Path
    weight: float


@dataclass(frozen=True)
class Run:
    """One run of a target. ``failed`` is the file with the input that has ended it."""

    executions: int
    failed: str | None
    is_interrupted: bool
    said: str


def programs(driver: Path, *, has_atheris: bool) -> tuple[Program, ...]:
    """Return all targets that can be run: the driver's, and with atheris those of Python."""
    rust = [
        Program(name, "Rust", (str(driver / name),), CRATE / "corpora" / name, weight)
        for name, weight in WEIGHTS.items()
    ]
    python = [
        Program(name, "Python", (sys.executable, "-m", "chores.fuzz_target", name), CORPORA / name, weight)
        for name in TARGETS
        for weight in [0.1 if name in OPENING_FILES else 1]
    ]
    return (*rust, *(python if has_atheris else ()))


def build_driver() -> Path:
    """Build the driver's targets, and return where they are."""
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    machine = next(line.removeprefix("host: ") for line in said.splitlines() if line.startswith("host: "))
    # With a named target, what runs while building is not instrumented.
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target", machine]
    subprocess.run(command, cwd=CRATE, check=True)
    return CRATE / "target" / machine / "release"


def execute(program: Program, runs: int, most_s: int, place: Path) -> Run:
    """Run a target for some executions or seconds; SIGTERM to this process ends the run, which counts."""
    found, failed = place / "found" / program.name, place / "failed" / program.name
    for directory in (found, failed):
        directory.mkdir(parents=True, exist_ok=True)
    limits = (*_LIMITS, f"-runs={runs}", f"-max_total_time={most_s}", f"-artifact_prefix={failed}/")
    return _watched((*program.argv, *limits, str(found), str(program.corpus)))


def _watched(argv: Sequence[str]) -> Run:
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:

        def stop(_number: int, _frame: FrameType | None) -> None:
            process.terminate()

        former = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        said, _ = process.communicate()
        for number, handler in former.items():
            signal.signal(number, handler)
    kept = _KEPT.search(said)
    return Run(executed(said), kept and kept[1], process.returncode in _INTERRUPTED, said)


def executed(said: str) -> int:
    """Return how many executions libFuzzer's output tells of: at its end, or in the last line before."""
    return max(map(int, _EXECUTED.findall(said)), default=0)
