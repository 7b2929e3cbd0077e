"""Charts as inline SVG: data in, markup out. Pure.

No scripts, no style attributes, no fonts of their own.

A page shows every chart twice, drawn for a wide and for a narrow screen, and lets its style sheet choose:
scaling one drawing down would make its text unreadable on a phone.

    svg.py      elements and the frame with title and description
    scales.py   from values to pixels, and ticks that do not collide
    labels.py   texts that have to fit, and labels that must not overlap
    forest.py   effects with intervals        ratios.py      variant/baseline per block
    values.py   every arm's own values        memory.py      the memory proof
    rates.py    a step's rate over its time   rounds.py      the axis that charts of blocks share
    heat_strip.py  cells by place, coloured by share
    lines.py    values with intervals over a few places, a panel per data set
"""
