"""How like its original a replayed workload is, as terminal and page show it."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from tests.golden.synthetic import experiment

from pgdyno.model.experiments.likeness import Likeness, StatementLikeness
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.workload.view.likeness_text import likeness_sentences, likeness_table, likeness_words

HALF, WHOLE = {"calls": 0.5, "time": 0.25}, {"calls": 1.0, "time": 0.75}
ALIKE = Likeness(
    {"calls": 0.5, "time": 0.95},
    (
        StatementLikeness("select-t", HALF, WHOLE, 1.5, 2.5),
        StatementLikeness("update-t", {"calls": 0.5, "time": 0.75}, {"calls": 0.0, "time": 0.0}, 3.0, None),
    ),
)
SENTENCE = (
    "shop: likeness 0.50 (calls 0.50, time 0.95): this is a similar workload, which differs most in "
    "calls, above all for select-t (share 50.0% → 100.0%)"
)


def test_the_one_number_says_whether_it_is_the_workload() -> None:
    assert likeness_words(replace(ALIKE, by_quantity={"calls": 0.9, "time": 1.0})) == (
        "Likeness 0.90 (calls 0.90, time 1.00): this is the workload"
    )
    assert list(likeness_sentences(replace(experiment(), likenesses={"shop": ALIKE}))) == [SENTENCE]


def test_statements_come_by_their_time_in_the_original() -> None:
    assert likeness_table(ALIKE).rows == (
        ("update-t", "50.0% → 0.0%", "75.0% → 0.0%", "3.000 → –"),
        ("select-t", "50.0% → 100.0%", "25.0% → 75.0%", "1.500 → 2.500"),
    )


def test_page_and_terminal_show_it_beside_the_verdicts() -> None:
    found = replace(experiment(), likenesses={"shop": ALIKE})
    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        console.print(verdict_table(found))
    assert f"{SENTENCE}." in captured.get()
    page = render_page(found)
    assert f"<p>{SENTENCE}.</p>" in page
    assert "50.0% → 100.0%" in page
