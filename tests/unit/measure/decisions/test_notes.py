"""Notes of an experiment."""

from __future__ import annotations

from pgdyno.measure.decisions.notes import method_notes
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.workload import DUMP, DataSet, PgbenchScripts, ResetPolicy, Workload


def test_an_experiment_says_once_what_rows_its_workload_runs_on() -> None:
    def workload(rows: str | None) -> Workload:
        return Workload(
            name="shop",
            title="captured",
            data_set=DataSet("copy", 1, 1, maker=DUMP, rows=rows),
            reset=ResetPolicy.KEEP,
            kind=PgbenchScripts(()),
        )

    assert method_notes([workload("made-up rows")] * 2, Design())[-1:] == ("shop runs on made-up rows",)
    assert not any("runs on" in one for one in method_notes([workload(None)], Design()))
