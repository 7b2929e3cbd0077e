"""What each part of a plan is worth, as a picture of its own for README: from a bundle to SVG.

python -m bench.waterfall BUNDLE.zip > docs/results/layers-of-a-plan.svg
"""

from __future__ import annotations

import sys
from pathlib import Path

from pgdyno.measure.view.parts_text import attribution_figure
from pgdyno.results.bundle import verify_bundle

STYLE = """<style>
svg { background: #fdfdfc; color: #1d2126 }
text { font: 13px system-ui, sans-serif; fill: currentColor } .strong { font-weight: 650 }
.small, .tick { font-size: 11.5px } .muted, .tick { fill: #5b636d }
.grid, .rule { stroke: #dcdcd6 } .zero { stroke: #5b636d; stroke-width: 1.25 }
.better { fill: #0b62a8; opacity: 0.75 } .worse { fill: #b04300; opacity: 0.75 }
.equivalent { fill: #5b636d; opacity: 0.6 } .whole { fill: currentColor; opacity: 0.8 }
.whisker { stroke: currentColor; stroke-width: 1.25 }
@media (prefers-color-scheme: dark) {
  svg { background: #15181c; color: #e8e8e4 } .muted, .tick { fill: #a3abb5 }
  .grid, .rule { stroke: #363c44 } .zero { stroke: #a3abb5 }
  .better { fill: #6db5f2 } .worse { fill: #f59a5b } .equivalent { fill: #a3abb5 }
}
</style>"""


def main() -> None:
    """Print the picture of a bundle's experiment."""
    found = verify_bundle(Path(sys.argv[1]))
    drawn = None if found.experiment is None else attribution_figure(found.experiment)
    if found.problems or drawn is None:
        sys.exit(f"{sys.argv[1]}: nothing was taken apart, or the bundle is damaged: {found.problems}")
    opening, rest = str(drawn.wide).removeprefix("<svg ").split(">", 1)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="848" {opening}>{STYLE}{rest}')


if __name__ == "__main__":
    main()
