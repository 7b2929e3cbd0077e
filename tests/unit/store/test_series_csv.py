"""Raw series as CSV, read back by the standard library's reader."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from tests.golden.synthetic import READ_ONLY, experiment

from pgdyno.model.experiment import ArmBlock, Block, Slice
from pgdyno.store.series import blocks_csv, slices_csv


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_every_metric_of_every_arm_has_a_line_and_full_precision() -> None:
    base = experiment()
    found = rows(blocks_csv(base.blocks))
    assert len(found) == 24 * 2 * 5
    block, arm = base.blocks[0], base.blocks[0].arms[1]
    (line,) = [
        row
        for row in found
        if (row["workload"], row["round"], row["block"]) == (block.workload, "1", "1")
        and (row["variant"], row["metric"]) == ("plan", "latency_ms_p99")
    ]
    assert float(line["value"]) == arm.values["latency_ms_p99"]


def test_texts_with_commas_quotes_and_line_ends_survive() -> None:
    odd = 'a "b", c\r\nd'
    block = Block("w", 0, 0, 1, (ArmBlock("v", 1, 1.0, {"m": 0.1}),), void=odd)
    assert rows(blocks_csv([block]))[0]["void"] == odd


def test_slices_name_their_variant_and_have_a_column_per_server() -> None:
    def slices_of(workload: str, round_: int, index: int) -> Sequence[Slice]:
        return [Slice(1, 10, 20, (3, 4))] if (workload, round_, index) == (READ_ONLY, 0, 1) else []

    found = rows(slices_csv(experiment().blocks, slices_of, ("default", "plan")))
    assert found == [
        {
            "workload": READ_ONLY,
            "round": "1",
            "block": "2",
            "variant": "plan",
            "start_ns": "10",
            "end_ns": "20",
            "server_cpu_ns_1": "3",
            "server_cpu_ns_2": "4",
        }
    ]
