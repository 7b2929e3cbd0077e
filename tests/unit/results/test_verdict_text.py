"""The verdict on a terminal and in a pipe."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console
from tests.golden.synthetic import experiment

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Decision, Interval
from pgdyno.model.variants.variant import Variant
from pgdyno.results.verdict_text import verdict_table

NBSP = "\N{NO-BREAK SPACE}"
THREE = ("default", "application", "plan")


def printed(of: Experiment, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(verdict_table(of))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().replace(NBSP, " ")


def test_table_has_a_heading_per_workload_and_a_line_per_metric() -> None:
    lines = [line.rstrip() for line in printed(experiment()).splitlines()]
    assert "sysbench-read-only" in lines
    assert "  throughput (tps)                  1,484 → 1,779  +20.0 %  +18.5 % … +21.5 %  ✓ better" in lines
    assert "  99th percentile latency (ms)        11.3 → 12.4   +9.7 %   +7.2 % … +12.2 %  ✗ worse" in lines


def test_table_fits_80_columns_without_losing_a_figure() -> None:
    shown = printed(experiment(), width=80)
    assert all(len(line) <= 80 for line in shown.splitlines())
    for part in ("sysbench-read-write", "1,484 → 1,779", "+18.5 % … +21.5 %", "? inconclusive"):
        assert part in shown
    assert shown.count("…") == 6  # only those within intervals: nothing was cut off


def test_reason_for_every_inconclusive_verdict_is_printed() -> None:
    shown = printed(experiment())
    assert "? sysbench-read-only, plan, 99th percentile latency: cannot tell: the interval" in shown


def test_reason_that_many_verdicts_share_is_printed_once() -> None:
    base = experiment()
    same = tuple(
        replace(v, decision=Decision.INCONCLUSIVE, reason="no block counts", effect=None, interval=None)
        for v in base.verdicts
    )
    assert printed(replace(base, verdicts=same)).count("? 6 comparisons: no block counts") == 1


def test_variants_get_a_column_when_there_are_several() -> None:
    base = experiment()
    more = tuple(replace(verdict, variant="other") for verdict in base.verdicts)
    shown = printed(replace(base, verdicts=(*base.verdicts, *more)), width=120)
    assert "variant" in shown
    assert "other: better on sysbench-read-only" in shown


def test_several_variants_fit_80_columns_with_headings_of_their_own() -> None:
    base = experiment()
    wide = [
        replace(verdict, variant=name, interval=Interval(0.112, 0.6, 1.383, 0.95))
        for verdict in base.verdicts
        for name in ("application", "plan")
    ]
    shown = printed(replace(base, variants=tuple(map(Variant, THREE)), verdicts=tuple(wide)), width=80)
    lines = [line.rstrip() for line in shown.splitlines()]
    assert all(len(line) <= 80 for line in lines)
    begin = lines.index("sysbench-read-only, application")
    assert lines[begin - 1].split() == ["before", "→", "after", "effect", "95", "%", "interval", "verdict"]
    assert lines[begin + 1 : begin + 3] == [
        "  throughput (tps)                    +20.0 %  −88.8 % … +38.3 %  ✓ better",
        "  server CPU per                      −14.1 %  −88.8 % … +38.3 %  ✓ better",
    ]
    assert "sysbench-read-only, plan" in lines
    assert shown.count("…") == len(wide)  # only those within intervals: nothing was cut off


def test_a_workload_with_a_long_name_takes_no_room_from_figures() -> None:
    name = "a-script-whose-name-is-much-longer-than-that-of-any-metric"
    base = experiment()
    long = tuple(replace(one, workload=name) for one in base.verdicts if one.workload == base.workloads[0])
    lines = printed(replace(base, workloads=(name,), verdicts=long, blocks=()), width=80).splitlines()
    assert name in lines
    assert any("throughput (tps)" in line and "+20.0 %  +18.5 % … +21.5 %" in line for line in lines)


def test_names_are_printed_as_they_are() -> None:
    base = experiment()
    marked = replace(base, question="is [bold]x[/bold] [link=//evil]better[/link]?")
    assert "is [bold]x[/bold] [link=//evil]better[/link]?" in printed(marked)


def test_names_cannot_steer_the_terminal() -> None:
    evil = replace(experiment(), question="red \x1b[31m \x9b2J bell \x07")
    shown = printed(evil)
    assert "red \ufffd[31m \ufffd2J bell \ufffd" in shown
    assert not set(shown) & set("\x1b\x9b\x07")


def test_what_must_not_be_overlooked_comes_before_the_table() -> None:
    base = replace(
        experiment(), variants=(Variant("default"), Variant("plan", {"fsync": "off"})), is_complete=False
    )
    lines = printed(base).splitlines()
    assert lines[1:3] == [
        "NOT DURABLE: plan can lose committed data in a crash (fsync=off)",
        "INTERRUPTED: the experiment did not run to its planned end",
    ]


def test_without_verdicts_the_figures_are_printed() -> None:
    alone = replace(experiment(), verdicts=())
    expected = (
        "sysbench-read-only, default: 1,484 transactions/s (geometric mean of 11 blocks, 1,404 … 1,569)"
    )
    assert expected in printed(alone, width=200)


def test_what_an_emulator_made_is_said_first() -> None:
    lines = printed(replace(experiment(), emulated_machine="aarch64"), width=200).splitlines()
    assert lines[1] == (
        "EMULATED: the server was built for aarch64 and ran emulated. "
        "Its results are shown; its speed is unknown"
    )


def test_a_patched_server_is_named_once_by_its_own_word_or_by_a_note() -> None:
    said = {"value": "'--with-icu' 'PGDYNO_PATCHES=send-buffer,no-failing-recv'", "source": "pg_config()"}
    found = replace(experiment(), server={"capabilities": {"build_flags": said}})
    assert printed(found, width=200).splitlines()[1] == (
        "PATCHED: the server is not PostgreSQL as it was released: send-buffer, no-failing-recv"
    )
    noted = replace(found, notes=("PATCHED: PostgreSQL 18.6 (built-1) is not PostgreSQL as it was released",))
    assert printed(noted, width=200).count("PATCHED") == 1
    assert "PATCHED" not in printed(experiment(), width=200)
