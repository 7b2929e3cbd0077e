"""Options of measuring commands: mistakes are refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.integration.cli.test_compare import SMALL

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home", "pg18_bin")]


def test_options_that_an_experiment_file_decides_about_are_refused_instead_of_ignored(home: Path) -> None:
    done = pgdyno("run", str(home / "any.toml"), "--embedded", "--seed", "3", "--phase", "cycle")
    assert done.returncode == 2
    assert "an experiment file does not accept --phase, --seed" in done.stderr
    assert (
        "HINT:  set workloads = […] in the file, and under [design] block_s, blocks_per_round, clients, "
        "equivalence_margin, phase, rounds, seed, slice_s\n"
    ) in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "a", *SMALL), "a comparison needs at least two variants"),
        (("compare", "a", "b", "--embedded"), "no workload was named"),
        (("compare", "a", "b", "--workload", "nope", "--embedded"), 'no workload "nope"'),
        (("compare", "a", "b", "--workload", "pgbench-select"), "no PostgreSQL was specified"),
        (("compare", "a", "b", *SMALL, "--budget", "soon"), '"soon" is not a duration'),
        (("compare", "a", "b", *SMALL, "--until", "bored"), 'invalid --until "bored"'),
        (("compare", "a", "b", "--script", "/no.sql", "--embedded"), 'could not read script "/no.sql"'),
        (("run", "nope", "--embedded", "--workload", "pgbench-select"), 'no study or file "nope"'),
    ],
)
def test_mistakes_on_the_command_line_are_usage_errors(arguments: tuple[str, ...], message: str) -> None:
    done = pgdyno(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
