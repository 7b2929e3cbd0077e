"""Run every fuzz target until it has had its executions: `make fuzz`.

python -m chores.fuzz [--executions N]

The log in build/fuzz has a line per run of a target, of two minutes at most; a stopped run is taken up where
it was. An input that fails is kept in build/fuzz/failed and ends its target: `make fuzz` then fails. To begin
again, remove build/fuzz.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chores.fuzz_programs import Program, Run, build_driver, execute, programs

PLACE = Path("build/fuzz")
LOG = PLACE / "log.jsonl"
EXECUTIONS = 12_000_000
PIECE_S = 120


def main() -> int:
    """Run what is missing and print the summary; 1 if any input has failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--executions", type=int, default=EXECUTIONS, help="of all targets together")
    total = parser.parse_args().executions
    PLACE.mkdir(parents=True, exist_ok=True)
    known = programs(build_driver(), has_atheris=find_spec("atheris") is not None)
    if not any(program.language == "Python" for program in known):
        print("Python's targets are skipped: atheris is not installed (pip install atheris)")
    share = total / sum(program.weight for program in known)
    for program in known:
        _run(program, round(program.weight * share))
    print(summary(_entries(), hashlib.sha256(LOG.read_bytes()).hexdigest()))
    return int(any(entry["failed"] for entry in _entries()))


def _run(program: Program, wanted: int) -> None:
    """Run a target piece by piece until it has its executions, or an input fails."""
    while (missing := wanted - done(_entries(), program.name)) > 0:
        before = time.monotonic()
        run = execute(program, missing, PIECE_S, PLACE)
        _log(program, run, time.monotonic() - before)
        if run.failed:
            print(f"{program.name}: an input fails, see {run.failed}")
            return
        if not run.executions:
            sys.exit(f"{program.name} ended without one execution:\n{run.said[-2000:]}")


def _log(program: Program, run: Run, seconds: float) -> None:
    entry = {
        "target": program.name,
        "language": program.language,
        "executions": run.executions,
        "seconds": round(seconds, 1),
        "failed": run.failed and Path(run.failed).name,
    }
    with LOG.open("a") as file:
        file.write(json.dumps(entry) + "\n")
    print(f"{program.name}: {run.executions:,} executions in {seconds:.0f} s", flush=True)
    if run.is_interrupted:
        sys.exit("interrupted: make fuzz goes on from here")


def _entries() -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []


def done(entries: Iterable[Mapping[str, Any]], target: str) -> int:
    """Return how many executions a target has had; as good as all of them if an input has failed."""
    own = [entry for entry in entries if entry["target"] == target]
    return sys.maxsize if any(entry["failed"] for entry in own) else sum(one["executions"] for one in own)


def summary(entries: Iterable[Mapping[str, Any]], digest: str) -> str:
    """Return the log as a table in Markdown, with its checksum."""
    rows: dict[tuple[str, str], list[float]] = {}
    for entry in entries:
        row = rows.setdefault((entry["language"], entry["target"]), [0, 0, 0])
        row[0] += entry["executions"]
        row[1] += entry["seconds"]
        row[2] += entry["failed"] is not None
    rows["", "all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = ["| language | target | executions | seconds | failed |", "|---|---|---:|---:|---:|"]
    lines += [
        f"| {language} | {target} | {executions:,.0f} | {seconds:,.0f} | {failed:.0f} |"
        for (language, target), (executions, seconds, failed) in rows.items()
    ]
    return "\n".join([*lines, "", f"SHA-256 of the log: {digest}"])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failure:
        sys.exit(str(failure))
