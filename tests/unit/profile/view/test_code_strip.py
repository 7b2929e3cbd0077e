"""Code of two builds by page."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.profile.view.test_processor import LAYOUT
from tests.unit.profile.view.test_profile_page import PROFILE

from pgdyno.profile.records.microarchitecture import (
    HotCode,
)
from pgdyno.profile.view.processor import by_origin, code_notes, code_table


def test_layouts_that_are_known_alike_are_compared() -> None:
    sampled = replace(LAYOUT, is_simulated=False, unit="samples", coverage=(HotCode(0.9, None, 60, 1, 1),))
    profiles = (
        replace(PROFILE, layouts=(sampled, LAYOUT)),
        replace(PROFILE, variant="other", layouts=(LAYOUT,)),
    )
    of_samples, of_simulations = by_origin(profiles)
    assert [variant for variant, _ in of_simulations] == ["default", "other"]
    assert code_table(of_samples).rows == (("default", "90%", "–", "60", "1 of 300", "1"),)
    table = code_table(of_simulations)
    assert table.rows[1] == ("default", "99%", "about 5,000", "90", "2 of 300", "1")
    assert "simulated" in table.caption
    assert "other, code by place (simulated): not in postgres, and not shown: libc.so.6 5.0%" in [
        *code_notes(profiles)
    ]
    assert "other, code by place (simulated): stripped" in [*code_notes(profiles)]
