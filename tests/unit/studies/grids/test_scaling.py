"""What is said of a curve by clients: on the page, on a terminal, and as the answer."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console
from tests.golden.synthetic_clients import experiment
from tests.unit.results.test_page import Outline

from pgdyno.measure.verdicts.scaling import ScalingCurve
from pgdyno.measure.view.wording import answers
from pgdyno.model.experiments.scaling import Confirmation, Dip, Knee, Law, Level, Scaling
from pgdyno.model.experiments.verdict import Interval
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.studies.grids.scaling import sentences

NBSP = "\N{NO-BREAK SPACE}"
INTERVAL = Interval(0.08, 0.1, 0.12, 0.95)


def scaling(**parts: object) -> Scaling:
    levels = tuple(Level(one, 5, 100.0, Interval(1, 1, 1, 0.95), None) for one in (1, 8, 32))
    whole = Scaling(levels, 8, Knee(4, 6, 0.05), None, (), (), None)
    return replace(whole, **parts)  # type: ignore[arg-type]


def said(of: Scaling, confirmation: Confirmation | None = None) -> list[str]:
    curve = ScalingCurve("select", 1 << 20, "clients", of, confirmation, {})
    return [one.replace(NBSP, " ") for one in sentences(curve)]


def test_a_knee_between_two_levels_is_said_as_such() -> None:
    knee, highest = said(scaling())[:2]
    assert knee.startswith("Knee: between 4 and 6 clients, the smallest measured number with at least 95 %")
    assert highest == "Highest at 8; no higher number was proven to be worse"
    assert said(scaling(knee=Knee(2, None, 0.05)))[0].startswith("Knee: 2 or more clients")
    assert said(scaling(knee=Knee(1, 1, 0.05)))[0].startswith("Knee: 1 client, the smallest")
    assert said(scaling(worse_from=12))[1] == "Highest at 8; significantly worse from 12 on"


def test_a_recommendation_is_said_with_what_fresh_rounds_say_of_it() -> None:
    ratio = Interval(0.97, 1.02, 1.07, 0.95)
    assert said(scaling(), Confirmation(1, 8, ratio, 5, is_confirmed=True))[1] == (
        "Recommended: 1 client, confirmed in 5 rounds not used for the choice: "
        "at least 97 % of any other level's rate"
    )
    ratio = Interval(0.9, 0.96, 1.02, 0.95)
    assert said(scaling(), Confirmation(4, 8, ratio, 5, is_confirmed=False))[1] == (
        "4 clients seemed sufficient, but 5 rounds not used for the choice do not confirm 95 %: "
        "96 % (90 % … 102 %) of the rate at 8"
    )


def test_a_law_that_fits_is_named_with_its_terms() -> None:
    amdahl = Law("Amdahl", INTERVAL, None, None, 0.4)
    usl = Law("USL", INTERVAL, Interval(0.001, 0.002, 0.003, 0.95), 21.2, 0.6)
    assert said(scaling(laws=(amdahl, usl), law="Amdahl"))[-1] == (
        "Amdahl's law fits from 1 to 32 clients: contention 10 % (8 % … 12 %)"
    )
    assert said(scaling(laws=(amdahl, usl), law="USL"))[-1] == (
        "The universal scalability law fits from 1 to 32 clients: contention 10 % (8 % … 12 %), "
        "crosstalk 0.002 (0.001 … 0.003), peak at 21.2"
    )
    assert said(scaling(laws=(amdahl, usl)))[-1] == "No scaling law fits (Amdahl and USL tested)"
    assert said(scaling())[-1] == "Too few levels to test a scaling law"


def test_a_curve_with_two_peaks_gets_no_law() -> None:
    assert said(scaling(dips=(Dip(2, 4, 8),)))[-1] == (
        "More than one peak: lower at 4 than at 2 and at 8, so no scaling law fits"
    )


def test_the_page_answers_with_the_knee_and_has_every_level() -> None:
    outline = Outline(render_page(experiment()))
    text = outline.text.replace(NBSP, " ")
    assert outline.errors == []
    assert "pgbench-select, 591 MB: the knee is 4 clients." in text
    assert "There is no verdict" not in text
    assert "How it scales, 591 MB of data" in text
    assert "The universal scalability law fits" in text
    assert "every number of clients" in text


def test_what_is_missing_or_not_finished_is_said() -> None:
    assert answers(experiment(rounds=3)) == ("pgbench-select, 591\xa0MB: too few rounds count.",)
    (answer,) = answers(replace(experiment(), is_complete=False))
    assert answer == "pgbench-select, 591\xa0MB: the knee is 4 clients so far."


def test_a_terminal_shows_the_same_in_80_columns() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=False, color_system=None)
    console.print(verdict_table(experiment()))
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().replace(NBSP, " ").splitlines()]
    assert "pgbench-select, 591 MB: the knee is 4 clients." in lines
    assert "pgbench-select, 591 MB of data" in lines
    assert any(line.split()[:1] == ["6"] and "the highest" in line for line in lines)
    assert all(len(line) <= 80 for line in lines)
