"""Scripts of pgbench as workloads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.captured import Between, CapturedCall, Constant, Parameter, SameValue
from pgdyno.workload.capture.scripts.scripted import ReadScript, ScriptedLoad, read_script

TPCB = """\
-- as pgbench has it
\\set aid random(1, 100000 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts
  WHERE aid = :aid;
END;
"""


def load(*texts: str, weight: float = 1.0) -> ScriptedLoad:
    found = ScriptedLoad()
    for text in texts:
        found.add(ReadScript("s.sql", weight, read_script("s.sql", text, {"scale": 3})))
    return found


def parameters(text: str) -> list[tuple[Parameter, ...]]:
    [transaction] = load(text).transactions
    return [call.parameters for call in transaction.calls]


def refused(text: str) -> tuple[str, str | None]:
    with pytest.raises(UsageError) as found:
        load(text)
    return found.value.message, found.value.detail


def test_variables_are_parameters_and_the_same_where_they_are_used_again() -> None:
    [transaction] = load(TPCB, weight=9.0).transactions
    assert transaction.weight == 9.0
    assert transaction.calls == (
        CapturedCall("begin", 1.0),
        CapturedCall("update-pgbench_accounts", 1.0, (Between(-5000, 5000), Between(1, 300_000))),
        CapturedCall("select-pgbench_accounts", 1.0, (SameValue(2, "update-pgbench_accounts"),)),
        CapturedCall("end", 1.0),
    )


def test_statements_are_counted_by_weight_and_shared_by_scripts() -> None:
    found = load("SELECT 1;", "SELECT 1; SELECT a FROM t;", weight=2.0)
    assert {one.name: (one.sql, one.seen.calls) for one in found.counted()} == {
        "select": ("SELECT 1", 4),
        "select-t": ("SELECT a FROM t", 2),
    }
    assert found.is_read_only


def test_a_statement_that_comes_twice_has_two_names() -> None:
    [transaction] = load(
        "\\set a random(1, 9)\nSELECT :a;\n\\set a random(1, 9)\nSELECT :a;\nSELECT :a;"
    ).transactions
    assert [(call.statement, call.parameters) for call in transaction.calls] == [
        ("select", (Between(1, 9),)),
        ("select-2", (Between(1, 9),)),
        ("select-3", (SameValue(1, "select-2"),)),
    ]


def test_a_variable_may_be_another_one_plus_a_number() -> None:
    text = "\\set a random(10, 20)\n\\set b :a + 5\n\\set c 1 + :a\nSELECT :b, :a, :c, :b;"
    assert parameters(text) == [(Between(15, 25), SameValue(1, plus=-5), SameValue(1, plus=-4))]


def test_constants_are_parameters_too_and_casts_are_none() -> None:
    text = "\\set n 2 * :scale\n\\set x 1.5\nSELECT :n, :x, a::text, ':other' FROM t WHERE b[1:2] = ARRAY[3];"
    assert parameters(text) == [(Constant("6"), Constant("1.5"))]


def test_a_command_goes_on_after_a_backslash() -> None:
    assert parameters("\\set a \\\n  random(1, \\\n 5)\nSELECT :a") == [(Between(1, 5),)]


def test_distributions_have_their_parameters() -> None:
    text = "\\set a random_zipfian(1, 9, 1.1)\n\\set b random_gaussian(1, 9, 2)\nSELECT :a, :b;"
    assert parameters(text) == [(Between(1, 9, "zipfian", 1.1), Between(1, 9, "gaussian", 2.0))]


def test_numbers_are_sent_as_pgbench_sends_them() -> None:
    text = "\\set a 10 / 2.0\n\\set b NULL\n\\set c 1 = 1\nSELECT :a, :b, :c;"
    assert parameters(text) == [(Constant("5"), Constant(None), Constant("true"))]


def test_a_command_within_a_comment_is_none() -> None:
    text = "\\set aid random(1, 9)\n/*\n\\set aid 1\n--*/\nSELECT :aid;"
    assert parameters(text) == [(Between(1, 9),)]


@pytest.mark.parametrize(
    ("text", "message", "detail"),
    [
        (
            "SELECT 1;\n\\shell rm x\n",
            '"s.sql", line 2: a workload does not support \\shell',
            "pgdyno does not run shell commands of scripts",
        ),
        (
            "\\sleep 5 ms",
            '"s.sql", line 1: a workload does not support \\sleep',
            "a workload has no think times: workload replay --rate sets the rate of transactions",
        ),
        (
            "\\if :scale > 1\nSELECT 1;\n\\endif",
            '"s.sql", line 1: a workload does not support \\if',
            "a workload has the same statements in each transaction; write a script for each branch",
        ),
        (
            "SELECT 1 AS a \\gset\n",
            '"s.sql", line 1: a workload does not support \\gset',
            "a workload does not pass rows from one statement to the next",
        ),
        (
            "SELECT 1 \\; SELECT 2;",
            '"s.sql", line 1: a workload does not support \\;',
            "it sends several statements in one message; a workload sends each separately",
        ),
        ("SELECT 1 \\watch", '"s.sql", line 1: pgbench has no command \\watch', None),
        (
            "SELECT :client_id;",
            '"s.sql", line 1: a workload does not support :client_id',
            "its value differs between clients or runs",
        ),
        (
            "SELECT 1;\nBEGIN;\nSELECT 2;\nCOMMIT AND CHAIN;\n",
            '"s.sql", line 2: the transaction that begins here is not ended in the script',
            "nothing in it would ever be committed",
        ),
        (
            "SELECT 1 AS a\n\\gset\n",
            '"s.sql", line 2: a workload does not support \\gset',
            "a workload does not pass rows from one statement to the next",
        ),
        ("\\set a", '"s.sql", line 1: \\set requires a variable and an expression', None),
        (
            "\n\\set a random(1, :b)",
            '"s.sql", line 2: \\set a has an unsupported expression',
            ":b is not set before",
        ),
        (
            "\\set a random(1, 5) * 2",
            '"s.sql", line 1: \\set a has an unsupported expression',
            "of a random number, only a sum with an integer can be drawn",
        ),
        (
            "SELECT 1;\nSELECT ':scale';",
            '"s.sql", line 2: :scale is within quotation marks',
            "a parameter cannot be a part of a string",
        ),
        (
            "SELECT 1;\n\n  COPY t FROM STDIN;",
            '"s.sql", line 3: cannot be replayed',
            "COPY: its rows are not in the server's statistics",
        ),
        ("-- nothing\n", '"s.sql" has no statement', None),
    ],
)
def test_what_no_workload_can_have_is_refused_with_its_line(
    text: str, message: str, detail: str | None
) -> None:
    assert refused(text) == (message, detail)


@given(st.text(max_size=100))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = load(text)
    except UsageError as error:
        message = error.message
    else:
        message = f'"s.sql" {found.transactions[0].calls[0].statement}'
    assert message.startswith('"s.sql"')
