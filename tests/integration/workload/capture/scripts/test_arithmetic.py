"""Values of pgbench's set command, and the driver's draws, compared with pgbench itself."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from scipy import stats
from tests.fix_servers import RealServer

from pgdyno.load.captured import ColumnDraws, captured_options
from pgdyno.load.discovery import find_driver
from pgdyno.load.driver import prepared_statements
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.experiments.workload import CapturedLoad, DataSet, ResetPolicy, Workload
from pgdyno.workload.capture.scripts.arithmetic import Drawn, ExpressionError, Value, text_of
from pgdyno.workload.capture.scripts.expression import evaluate
from pgdyno.workload.capture.scripts.scripted import ReadScript, ScriptedLoad, read_script

pytestmark = pytest.mark.server

EXPRESSIONS = """
-7 / 2; -7 % 3; 7 % 2.5; -5.5 % 2; 7.0 / 2; 10 / 2.0; 1.0 / 0; 0.1 + 0.2; 1e20; .5; 1e3
int(2.5); int(3.5); int(7.7); int(-2.5); double(3); mod(7, 4) + MOD(7.6, 5); abs(-3)
greatest(1, 5, 3) - least(2, 4); least(1, 2.5); pow(2, 10); pow(-8, 0.333); pow(0, -1)
sqrt(2.25) + ln(exp(1)); sqrt(-1); ln(0); exp(1000); pi(); 1 + ~ 2 + 3; 2 * ~ 1 + 1; 5 & 3 | 8 # 1
1 # 2 | 4; 1 << 3 + 1; 1 << 63; -1 >> 1
-9223372036854775808; -9223372036854775808 % -1; - - 3; +3; 3 - 2 - 1; 2 * 3 % 4
1 <> 2 AND NOT 2 >= 3; not not true; NULL IS NULL or 1 / 0 = 1; false and 1 / 0 = 1; NULL and true; NULL + 1
null = null; null is not null; NULL isnull; 5 notnull; true IS NOT false; 1 = 1.0; 1 is null
case when 1 = 2 then 1 / 0 when 3 then 7 else 8 end; CASE WHEN NULL THEN 1 END
1 / 0; 5 % 0; 1 < 2 < 3; 5 = 5 = true; greatest(); true + 1; 1 and true; 1 + not true; greatest(true, 1)
9223372036854775807 + 1; 9223372036854775808; -9223372036854775808 / -1; int(1E32); 1.0E309
case 1 when 1 then 2 end; 'a'; 1 ! 2; random(5, 1); random_zipfian(1, 9, 1.0); random_gaussian(1, 9, 1.9)
random_exponential(1, 9, 0); random(-9223372036854775807, 9223372036854775807)
"""
DRAWS = 20_000
DISTRIBUTIONS = (
    "random(1, 50)",
    "random(5, 5.6)",
    "random_gaussian(1, 50, 2.5)",
    "random_gaussian(1, 50, 6)",
    "random_exponential(1, 50, 3)",
    "random_zipfian(1, 50, 1.07)",
    "random_zipfian(1, 50, 2.0)",
    "3 + random_exponential(1, 50, 0.5) - 1",
)


def printed(server: RealServer, script: Path, transactions: int = 1) -> list[str] | None:
    """Return the values that a script's debug() prints; None if pgbench ends with an error."""
    place = ("--host", str(server.socket_directory), "--port", str(server.port), "--username=postgres")
    done = subprocess.run(
        [
            "pgbench",
            "-n",
            f"--transactions={transactions}",
            "--random-seed=1",
            *place,
            f"--file={script}",
            "postgres",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if done.returncode else re.findall(r"^debug\(.*?\): (.*)$", done.stderr, re.MULTILINE)


def as_printed(value: Value) -> str:
    if isinstance(value, Drawn):
        return "drawn"
    if value is None:
        return "null"
    kind = "boolean" if isinstance(value, bool) else "int" if isinstance(value, int) else "double"
    return f"{kind} {text_of(value)}"


def test_expressions_have_the_values_that_pgbench_gives_them(pg15: RealServer, tmp_path: Path) -> None:
    script, different = tmp_path / "s.sql", []
    for text in re.split(r"[;\n]\s*", EXPRESSIONS.strip()):
        script.write_text(f"\\set x {text}\n\\set y debug(:x)\nSELECT 1;\n")
        theirs = printed(pg15, script)
        try:
            ours = [as_printed(evaluate(text, {}))]
        except ExpressionError:
            ours = None
        if ours != theirs:
            different.append(f"{text}: {ours} in place of {theirs}")
    assert not different


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_random_numbers_are_distributed_as_pgbench_s(pg15: RealServer, tmp_path: Path, text: str) -> None:
    """Chi-square of two samples with fixed seeds; p below a millionth fails."""
    script = tmp_path / "s.sql"
    script.write_text(f"\\set x {text}\n\\set y debug(:x)\n")
    theirs = printed(pg15, script, DRAWS)
    assert theirs is not None
    load = ScriptedLoad()
    load.add(ReadScript("s.sql", 1.0, read_script("s.sql", f"\\set x {text}\nSELECT :x;", {})))
    captured = CapturedWorkload(
        "w", "15", 1, "d", 0.0, 1, load.counted(), tuple(load.transactions), counted=("calls",)
    )
    workload = Workload("w", "", DataSet("d", 1, 1), ResetPolicy.KEEP, CapturedLoad(captured))
    options = captured_options(captured, ColumnDraws({}, {}))
    [statement] = prepared_statements(find_driver(tmp_path), workload, options, DRAWS)
    counts = [Counter(int(one) for (one,) in statement.samples), Counter(int(one[4:]) for one in theirs)]
    values = sorted(counts[0].keys() | counts[1].keys())
    frequent = [one for one in values if counts[0][one] + counts[1][one] >= 20]
    rare = [one for one in values if one not in set(frequent)]
    table = [[*(its[one] for one in frequent), sum(its[one] for one in rare)] for its in counts]
    columns = [column for column in zip(*table, strict=True) if sum(column)]
    assert stats.chi2_contingency(list(zip(*columns, strict=True))).pvalue > 1e-6
