"""The title of a comparison names what differs."""

from __future__ import annotations

import pytest

from pgdyno.model.variants.variant import parse_variant
from pgdyno.studies.compare import comparing_question


@pytest.mark.parametrize(
    ("variants", "question"),
    [
        (("default", "big:jit=off"), "How does big:jit=off compare with default?"),
        (
            ("often:checkpoint_timeout=1min,jit=off", "rare:checkpoint_timeout=3min,jit=off"),
            "How does rare:checkpoint_timeout=3min compare with often:checkpoint_timeout=1min?",
        ),
        (
            ("a:work_mem=1MB", "b:work_mem=1MB", "c:work_mem=2MB"),
            "How does b:work_mem=1MB and c:work_mem=2MB compare with a:work_mem=1MB?",
        ),
        (("same:jit=off", "same:jit=off"), "How does same compare with same?"),
    ],
)
def test_settings_that_all_variants_share_are_left_out(variants: tuple[str, ...], question: str) -> None:
    assert comparing_question([parse_variant(text) for text in variants]) == question
