"""What tests take: a pytest plugin that records it, and ``make slowest``, which shows it.

Seconds of setting up, running and tearing down, by test, of the latest run of each.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / ".durations.json"
SHOWN = 30
_seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add what a phase of a test took."""
    _seconds[report.nodeid] += report.duration  # type: ignore[assignment]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write it down, once for all workers."""
    if not hasattr(session.config, "workerinput"):
        seconds = {**recorded(), **{test: round(taken, 3) for test, taken in _seconds.items()}}
        FILE.write_text(json.dumps(seconds, indent=0) + "\n")


def recorded() -> dict[str, float]:
    """Return what was recorded: nothing before the first run."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def main() -> None:
    """Print the slowest tests, and what each folder takes in all."""
    seconds = recorded()
    folders: Counter[str] = Counter()
    for test, taken in seconds.items():
        folders[test.partition("::")[0].rpartition("/")[0]] += taken  # type: ignore[assignment]
    print(f"{sum(seconds.values()) / 60:.1f} minutes of one CPU or more, {len(seconds)} tests\n")
    for name, taken in [*Counter(seconds).most_common(SHOWN), ("", 0.0), *folders.most_common(SHOWN)]:
        print(f"{taken:8.1f} s  {name}" if name else "")


if __name__ == "__main__":
    main()
