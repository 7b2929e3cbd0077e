"""How like its original a replayed workload is, as terminal and page show it."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from tests.golden.synthetic import experiment

from pgdyno.model.experiments.likeness import Likeness, StatementLikeness, likeness_words
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.workload.view.likeness_text import likeness_sentences, likeness_table

HALF, WHOLE = {"calls": 0.5, "time": 0.25}, {"calls": 1.0, "time": 0.75}
ALIKE = Likeness(
    {"calls": 0.5, "time": 0.95},
    (
        StatementLikeness("select-t", HALF, WHOLE, 1.5, 2.5),
        StatementLikeness("update-t", {"calls": 0.5, "time": 0.75}, {"calls": 0.0, "time": 0.0}, 3.0, None),
    ),
)
SENTENCE = (
    "shop: likeness 0.50 (calls 0.50, time 0.95): this is not the workload; it differs most in "
    "calls, above all for select-t (share 50.0% → 100.0%)"
)


def test_the_one_number_says_whether_it_is_the_workload() -> None:
    assert likeness_words(replace(ALIKE, by_quantity={"calls": 0.9, "time": 1.0})) == (
        "Likeness 0.90 (calls 0.90, time 1.00): this is the workload"
    )
    assert list(likeness_sentences(replace(experiment(), likenesses={"shop": ALIKE}))) == [SENTENCE]


def test_assumed_transactions_are_stated_with_the_likeness() -> None:
    alike = replace(ALIKE, by_quantity={"calls": 0.95})
    assert likeness_words(replace(alike, assumed_share=0.125)).replace("\N{NO-BREAK SPACE}", " ") == (
        "Likeness 0.95 (calls 0.95): this is the workload. Which statements form 12.5 % of its "
        "transactions is partly assumed: see its notes"
    )
    assert likeness_words(replace(alike, assumed_share=0.004)) == (
        "Likeness 0.95 (calls 0.95): this is the workload"
    )


def test_quantities_of_transactions_are_shown_if_they_differ() -> None:
    of_transactions = {"rollbacks": (0.6, 0.0), "failed transactions": (0.0, 0.0), "sessions": (4.0, 5.0)}
    each = {"calls": 0.98, "rollbacks": 0.4, "failed transactions": 1.0, "sessions": 0.8}
    found = replace(ALIKE, by_quantity=each, of_transactions=of_transactions)
    assert likeness_words(found) == (
        "Likeness 0.40 (calls 0.98, rollbacks 0.40, sessions 0.80): this is not the workload; it differs "
        "most in rollbacks (60.0% → 0.0% of the transactions)"
    )
    assert likeness_words(replace(found, by_quantity={**each, "rollbacks": 0.99})) == (
        "Likeness 0.80 (calls 0.98, rollbacks 0.99, sessions 0.80): this is a similar workload, which "
        "differs most in sessions (4 → 5)"
    )
    assert [one.title for one in likeness_table(found).columns] == ["Statement", "calls", "ms/call"]


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
