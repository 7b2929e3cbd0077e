"""The report in a real browser: silent, offline, readable at every width, in light, dark and print."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.browser.chromium import Tab
from tests.golden.synthetic import experiment
from tests.golden.synthetic_grid import experiment as of_a_grid
from tests.golden.synthetic_steps import experiment as of_ten_steps
from tests.golden.synthetic_tuning import tuning

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.workload import Cell
from pgdyno.model.tuning.tuning import Tuning
from pgdyno.model.variants.variant import Variant
from pgdyno.results.page import render_page

PHONE, DESKTOP = 360, 1200

OVERLAPS = """
[...document.querySelectorAll("svg.chart")].filter(svg => svg.checkVisibility()).flatMap(svg => {
  const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
  return texts.flatMap(([one, a], i) => texts.slice(i + 1)
    .filter(([_, b]) => a.left < b.right - 1 && b.left < a.right - 1)
    .filter(([_, b]) => a.top < b.bottom - 2 && b.top < a.bottom - 2)
    .map(([other]) => one + " / " + other));
})
"""
CUT_OFF = """
[...document.querySelectorAll("svg.chart")].filter(svg => svg.checkVisibility()).flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")]
    .map(t => [t.textContent, t.getBoundingClientRect()])
    .filter(([_, b]) => b.left < frame.left - 2 || b.right > frame.right + 2 || b.bottom > frame.bottom + 2)
    .map(([text]) => text);
})
"""
OPEN_ALL = "document.querySelectorAll('details').forEach(d => { d.open = true })"
CONTRASTS = """
(() => {
  const luminance = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = numbers(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("body *")].filter(e => e.checkVisibility()
      && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .map(e => {
      const style = getComputedStyle(e), inSvg = e.ownerSVGElement;
      if (inSvg && e.classList.contains("inside")) return 21;
      const [a, b] = [numbers(inSvg ? style.fill : style.color), behind(inSvg ? inSvg.parentElement : e)]
        .map(luminance).sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    }).reduce((least, c) => Math.min(least, c), 21);
})()
"""


def opened(
    tab: Tab,
    directory: Path,
    of: Callable[[], Experiment],
    width: int = DESKTOP,
    scheme: str = "light",
    search: Callable[[], Tuning] | None = None,
) -> Tab:
    page = directory / "report.html"
    page.write_text(page_of(of, search), encoding="utf-8")
    tab.show(width=width, scheme=scheme)
    tab.open(page.as_uri())
    return tab


@cache
def page_of(of: Callable[[], Experiment], search: Callable[[], Tuning] | None) -> str:
    return render_page(of(), tuning=None if search is None else search())


def crowded() -> Experiment:
    """Return an experiment with many variants, long names and values close together."""
    base = experiment()
    names = ("plan", "a-variant-whose-name-goes-on-and-on-for-ever", *(f"variant-{n}" for n in range(6)))
    return replace(
        base,
        question="Which of " + ", ".join(names) + " is the fastest?",
        variants=(Variant("default"), *(Variant(name, {"work_mem": "64MB"}) for name in names)),
        verdicts=tuple(replace(v, variant=name) for name in names for v in base.verdicts),
        blocks=tuple(
            replace(b, arms=(b.arms[0], *(replace(b.arms[1], variant=name) for name in names)))
            for b in base.blocks
        ),
    )


def of_a_crowded_grid() -> Experiment:
    """Return a grid of two sizes and nine numbers of clients, with sizes that are no round figures."""
    base = of_a_grid()
    clients = (1, 2, 3, 4, 6, 8, 12, 16, 128)
    sizes = (511_500_000, 1_038_500_000)
    places = [(size, count) for size in sizes for count in clients]
    cells = {name: Cell("pgbench-select", *place) for name, place in zip(base.cells, places, strict=True)}
    return replace(base, cells=cells)


def of_a_long_search() -> Tuning:
    """Return a search of a hundred trials, all that can happen to one among them."""
    found = tuning()
    trials = tuple(replace(one, number=8 * turn + one.number) for turn in range(13) for one in found.trials)
    return replace(found, trials=trials)


def colours_in(png: bytes) -> int:
    """Return how many different bytes the picture's pixels hold: 1 for an empty page."""
    data, place = b"", 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + length]
        place += 12 + length
    return len(set(zlib.decompress(data)))


@pytest.mark.parametrize(
    ("of", "scheme"),
    [
        pytest.param(experiment, "light", id="usual-light"),
        pytest.param(experiment, "dark", id="usual-dark"),
        pytest.param(of_a_grid, "light", id="grid-light"),
        # A picture of a whole grid takes seconds, and its colours come from the same sheet as those above.
        pytest.param(of_a_grid, "dark", id="grid-dark", marks=pytest.mark.long),
    ],
)
def test_page_loads_without_complaints_and_asks_for_nothing_but_itself(
    tab: Tab, tmp_path: Path, scheme: str, of: Callable[[], Experiment]
) -> None:
    opened(tab, tmp_path, of, scheme=scheme)
    tab.evaluate(OPEN_ALL)
    assert colours_in(tab.screenshot()) > 50
    assert tab.complaints == []
    assert tab.requests == [(tmp_path / "report.html").as_uri()]


def test_a_page_that_does_load_and_run_things_is_noticed(tab: Tab, tmp_path: Path) -> None:
    """The test above would be worth nothing if the browser kept its complaints to itself."""
    page = tmp_path / "bad.html"
    policy = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">'
    page.write_text(f"{policy}<p style='color:red'>x</p><script>1</script><img src='//evil.example/x.png'>")
    tab.open(page.as_uri())
    tab.screenshot()
    assert [c for c in tab.complaints if "inline style" in c]
    assert [c for c in tab.complaints if "inline script" in c]
    page.write_text("<img src='http://evil.example/x.png'>")
    tab.open(page.as_uri())
    assert "http://evil.example/x.png" in tab.requests


@pytest.mark.parametrize(
    "of",
    [experiment, crowded, of_ten_steps, of_a_grid, of_a_crowded_grid],
    ids=["usual", "crowded", "ten steps", "grid", "crowded grid"],
)
@pytest.mark.parametrize("width", [PHONE, pytest.param(768, marks=pytest.mark.long), DESKTOP])
def test_nothing_sticks_out_overlaps_or_is_cut_off(
    tab: Tab, tmp_path: Path, of: Callable[[], Experiment], width: int
) -> None:
    opened(tab, tmp_path, of, width=width)
    tab.evaluate(OPEN_ALL)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(OVERLAPS) == []
    assert tab.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("of", [experiment, of_ten_steps, of_a_grid], ids=["usual", "ten steps", "grid"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_texts_have_the_contrast_that_wcag_asks_for(
    tab: Tab, tmp_path: Path, scheme: str, of: Callable[[], Experiment]
) -> None:
    """Level AA, success criterion 1.4.3: at least 4.5 to 1."""
    opened(tab, tmp_path, of, scheme=scheme)
    tab.evaluate(OPEN_ALL)
    assert tab.evaluate(CONTRASTS) >= 4.5


# Places do not depend on colours: each width in one scheme, and the others as well in make test-long.
of_widths_and_schemes = pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (PHONE, "dark"),
        (DESKTOP, "light"),
        pytest.param(PHONE, "light", marks=pytest.mark.long),
        pytest.param(DESKTOP, "dark", marks=pytest.mark.long),
    ],
)


@pytest.mark.parametrize("search", [tuning, of_a_long_search], ids=["usual", "long"])
@of_widths_and_schemes
def test_a_search_is_readable(
    tab: Tab, tmp_path: Path, search: Callable[[], Tuning], scheme: str, width: int
) -> None:
    opened(tab, tmp_path, experiment, width, scheme, search)
    tab.evaluate(OPEN_ALL)
    marks = (
        "[...document.querySelectorAll('#search figure svg .mark')].filter(e => e.checkVisibility()).length"
    )
    assert tab.evaluate(marks) == len(search().trials)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(OVERLAPS) == []
    assert tab.evaluate(CUT_OFF) == []
    assert tab.evaluate(CONTRASTS) >= 4.5
    assert tab.complaints == []


def test_dark_page_is_dark_and_light_page_is_light(tab: Tab, tmp_path: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    opened(tab, tmp_path, experiment, scheme="dark")
    assert tab.evaluate(background) == "rgb(21, 24, 28)"
    tab.show(width=DESKTOP, scheme="light")
    assert tab.evaluate(background) == "rgb(253, 253, 252)"


def test_print_is_light_even_from_a_dark_screen_and_shows_what_was_skipped(tab: Tab, tmp_path: Path) -> None:
    opened(tab, tmp_path, experiment, scheme="dark")
    tab.show(width=720, scheme="dark", medium="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    heights = "[...document.querySelectorAll('details.print dd')].map(e => e.getBoundingClientRect().height)"
    assert len(tab.evaluate(heights)) == 2
    assert all(height > 0 for height in tab.evaluate(heights))
    assert tab.print().startswith(b"%PDF-")


def test_hostile_names_run_nothing(tab: Tab, tmp_path: Path) -> None:
    evil = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
    base = experiment()
    named = replace(
        base,
        question=evil,
        notes=(evil,),
        blocks=tuple(replace(block, void=evil) for block in base.blocks[:2]),
        host={"hostname": {"value": evil, "source": evil}},
    )
    opened(tab, tmp_path, lambda: named)
    assert tab.evaluate("document.title") == f"{evil} – pgdyno"
    assert tab.complaints == []
    assert json.dumps(tab.requests).count("http") == 0
