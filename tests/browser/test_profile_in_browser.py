"""A profile's page in a real browser, with the processor's tables and the code by place of two variants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.browser.chromium import Tab
from tests.browser.test_report_in_browser import CONTRASTS, CUT_OFF, DESKTOP, OPEN_ALL, OVERLAPS, PHONE
from tests.unit.profile.view.test_processor import COUNTED, LAYOUT, SIMULATED
from tests.unit.profile.view.test_profile_page import PROFILE

from pgdyno.profile.records.microarchitecture import PageHeat
from pgdyno.profile.view.profile_page import render_profiles

SHARES = (0.5, 0.3, 0.1, 0.05, 0.03, 0.01, 0.008, 0.0018, 0.0002)
HEAT = tuple(PageHeat(index * 31, share, f"function_{index}") for index, share in enumerate(SHARES))
CELLS = """
[...document.querySelectorAll("svg.chart")].filter(svg => svg.checkVisibility())
  .flatMap(svg => [...svg.querySelectorAll(".heat")]).map(cell => getComputedStyle(cell).fill)
"""


def opened(tab: Tab, directory: Path, *, width: int, scheme: str = "light") -> Tab:
    layout = replace(LAYOUT, heat=HEAT)
    of_samples = replace(layout, is_simulated=False, unit="samples")
    whole = replace(PROFILE, counted=COUNTED, simulated=SIMULATED, layouts=(of_samples, layout))
    page = directory / "profile.html"
    page.write_text(render_profiles((whole, replace(whole, variant="generic"))), encoding="utf-8")
    tab.show(width=width, scheme=scheme)
    tab.open(page.as_uri())
    tab.evaluate(OPEN_ALL)
    return tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_a_profile_is_readable_and_asks_for_nothing_but_itself(
    tab: Tab, tmp_path: Path, width: int, scheme: str
) -> None:
    opened(tab, tmp_path, width=width, scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(OVERLAPS) == []
    assert tab.evaluate(CUT_OFF) == []
    assert tab.evaluate(CONTRASTS) >= 4.5
    assert tab.complaints == []
    assert tab.requests == [(tmp_path / "profile.html").as_uri()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_shares_have_colours_of_their_own(tab: Tab, tmp_path: Path, scheme: str) -> None:
    opened(tab, tmp_path, width=DESKTOP, scheme=scheme)
    assert len(set(tab.evaluate(CELLS))) == 6  # five steps, and the pages that are not executed
