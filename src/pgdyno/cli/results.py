"""Output of a measuring command: table or JSON, report, exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from pgdyno.base.ports import Progress
from pgdyno.cli.output import echo, open_progress, print_json, print_wide
from pgdyno.model.experiments.experiment import Experiment


def deliver(run: Callable[[Progress], Experiment], *, is_json: bool, is_gate: bool) -> None:
    """Run a measurement with progress on stderr, and print its result; with ``is_gate``, exit with a code."""
    progress = open_progress()
    try:
        experiment = run(progress)
    finally:
        progress.close()
    if is_json:
        from pgdyno.results.documents import comparison_document

        print_json(comparison_document(experiment))
    else:
        from pgdyno.results.report import write_report

        print_experiment(experiment)
        echo(f"\nReport: {write_report(experiment)}")
    if is_gate:
        from pgdyno.measure.decisions.plan_outcome import gate_code

        sys.exit(gate_code(experiment))


def print_experiment(experiment: Experiment) -> None:
    """Print the verdict table and the notes."""
    from pgdyno.measure.view.awake_sentence import awake_sentence
    from pgdyno.results.verdict_text import verdict_table
    from pgdyno.studies.peers_text import peers_text

    print_wide(verdict_table(experiment))
    if text := peers_text(experiment):
        echo(text)
    if experiment.awake is not None:
        echo(f"Note: {awake_sentence(experiment.awake)}")
    for note in experiment.notes:
        if not note.startswith("NOT DURABLE"):  # already in the table
            echo(f"Note: {note}")
