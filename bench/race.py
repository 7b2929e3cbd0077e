"""Whether root can be misled by the owner of a data directory, who exchanges names while root works there.

A process of an ordinary user exchanges the data directory, its parent and its files for links to a directory
of root's, and for FIFOs, as fast as it can; meanwhile root carries out each operation many times.

    done       tries that found everything in its place      refused   tries that ended with an error
    during     tries in which names were exchanged meanwhile
    changed    tries after which root's directory had changed: it is made anew each time
    read       tries that returned what only root may read
    hung       tries that were broken off after two seconds; after five there are no more FIFOs

At the end everything in root's directory is compared with the beginning. Exit code 1: root was misled, or a
try took more than a second. As root:

    python -m bench.race --tries 10000 --json race.json
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.race_attacker import Attacker, attacking
from bench.race_operations import Operation, operations
from bench.race_place import Place

from pgdyno.base.errors import PgdynoError

USER = "nobody"
LIMIT_S, HANG_S, MOST_HANGS = 1.0, 2.0, 5


@dataclass
class Result:
    """What became of the tries of one operation."""

    operation: str
    tries: int = 0
    done: int = 0
    refused: int = 0
    during: int = 0
    exchanges: int = 0
    changed: int = 0
    read: int = 0
    hung: int = 0
    longest_s: float = 0.0

    @property
    def is_sound(self) -> bool:
        """Whether root was never misled, nor kept waiting."""
        return not (self.changed or self.read or self.hung) and self.longest_s < LIMIT_S


class Hung(Exception):  # noqa: N818 — not an error of the operation, which must not catch it
    """A try that was broken off."""


def race(tries: int) -> list[Result]:
    """Run the race and return the results, by operation. Needs root."""
    user = pwd.getpwnam(USER)
    base, vault = (Path(tempfile.mkdtemp(prefix="pgdyno-race-")) for _ in range(2))
    own = Path(tempfile.mkdtemp(prefix="pgdyno-race-"))
    place = Place(base, vault, user.pw_uid, user.pw_gid)
    try:
        place.build()
        with operations(place, own) as all_operations:
            return [_race_of(one, place, tries) for one in all_operations]
    finally:
        for directory in (base, vault, own):
            shutil.rmtree(directory)


def _race_of(operation: Operation, place: Place, tries: int) -> Result:
    result = Result(operation.name)
    before, traces = place.everything(), place.traces()
    with attacking(place) as attacker, _alarm():
        for number in range(tries):
            _try(operation, number, attacker, result)
            if place.traces() != traces:
                result.changed += 1
                place.build_victim()
                before, traces = place.everything(), place.traces()
            if result.hung == MOST_HANGS:
                attacker.leave_out_fifos()
        result.exchanges = attacker.exchanges
    result.changed += place.everything() != before
    return result


def _try(operation: Operation, number: int, attacker: Attacker, result: Result) -> None:
    result.tries += 1
    exchanges, start = attacker.exchanges, time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, HANG_S)
    try:
        found = operation.call(number)
        result.refused += found is False
        result.done += found is not False
        result.read += operation.is_secret(found)
    except Hung:
        result.hung += 1
    except (PgdynoError, OSError, ValueError):
        result.refused += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    result.longest_s = max(result.longest_s, time.perf_counter() - start)
    result.during += attacker.exchanges != exchanges


@contextmanager
def _alarm() -> Iterator[None]:
    def break_off(*_: object) -> None:
        raise Hung

    former = signal.signal(signal.SIGALRM, break_off)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, former)


def table(results: list[Result]) -> str:
    """Return the results as a table in Markdown."""
    lines = [
        "| operation | tries | done | refused | during | changed | read | hung | longest (ms) |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {one.operation} | {one.tries} | {one.done} | {one.refused} | {one.during} | {one.changed} | "
        f"{one.read} | {one.hung} | {one.longest_s * 1e3:.1f} |"
        for one in results
    ]
    return "\n".join(lines)


def main() -> int:
    """Run the race and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tries", type=int, default=10_000, help="of each operation")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("only root can be misled: run it as root")
    results = race(arguments.tries)
    print(table(results))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(one) for one in results], indent=1) + "\n")
    return 0 if all(one.is_sound for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
