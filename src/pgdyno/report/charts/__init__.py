"""Charts as inline SVG: data in, markup out. Pure.

No scripts, no style attributes, no embedded fonts.

A page has every chart twice, drawn for a wide and for a narrow screen, and its style sheet shows one of them:
a scaled-down drawing would have unreadable text on a phone.

    svg.py      elements and the frame with title and description
    scales.py   from values to pixels, and ticks that do not overlap
    marks.py    marks of arms; shortened texts, and labels that do not overlap
    forest.py   effects with intervals        memory.py       the memory proof
    rates.py    a step's rate over time       waterfall.py    the effect of each change
    lines.py    values with intervals over a few places, a panel per data set
    shares.py   parts, flame graphs, heat      search_curve.py

Charts of blocks and rounds are in ``measure/view/``.
"""
