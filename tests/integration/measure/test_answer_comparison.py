"""Servers that answer the same statements otherwise are found before any of them is measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_progress import Remembered
from tests.golden.synthetic import experiment

from pgdyno.measure.answer_comparison import answers_compared
from pgdyno.measure.arenas.opening import open_scratch_arena
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.installations import embedded
from pgdyno.workload.workload_choice import captured_workload

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("home")]


def test_a_server_that_answers_otherwise_is_named_with_the_statement(workload_file: Path) -> None:
    variants = (
        Variant("default"),
        Variant("big", {"work_mem": "64MB"}),
        Variant("odd", {"timezone": "Asia/Tokyo"}),
    )
    captured = captured_workload(workload_file)
    before = replace(experiment(), variants=variants, notes=())
    with open_scratch_arena(embedded(), variants, Remembered(), is_isolated=False) as arena:
        for variant in variants:
            arena.load(variant, captured.data_set)
        found = answers_compared(before, arena, [captured], Remembered())
    assert found.notes == (
        "moment of w: answered otherwise by odd than by default, with the same rows and parameters",
        "answers to 3 statements of w were compared on all servers before measuring",
    )
