"""Run one fuzz target of pgdyno's Python under atheris, which sees what an input reaches.

python -m chores.fuzz_target NAME [options of libFuzzer] [CORPUS …]
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["pgdyno"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Feed a target until the options of libFuzzer, or an input that fails, end it."""
    program, name, *options = sys.argv
    atheris.Setup([program, *options], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
