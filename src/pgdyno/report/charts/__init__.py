"""Charts as inline SVG: data in, markup out. Pure.

No scripts, no style attributes, no fonts of their own.

A page shows every chart twice, drawn for a wide and for a narrow screen, and lets its style sheet choose:
scaling one drawing down would make its text unreadable on a phone.

    svg.py      elements and the frame with title and description
    scales.py   from values to pixels, and ticks that do not collide
    marks.py    marks of arms; texts that have to fit, and labels that must not overlap
    forest.py   effects with intervals        memory.py       the memory proof
    rates.py    a step's rate over its time   waterfall.py    what each change is worth
    lines.py    values with intervals over a few places, a panel per data set
    heat_strip.py, flame_graph.py, cascade.py, search_curve.py

Charts of blocks and rounds lie in ``measure/view/``.
"""
