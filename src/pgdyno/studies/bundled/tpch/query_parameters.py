"""Draws the values of the queries by the rules of clauses 2.4.1.3 to 2.4.22.3.

The rules are the specification's; the random numbers are NumPy's, so values differ from qgen's. Values of a
pass are the same for all variants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta

import numpy as np
from numpy.random import Generator as Random

from pgdyno.studies.bundled.tpch.queries import NUMBERS, Parameters, fraction

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = {
    "ALGERIA": "AFRICA",
    "ARGENTINA": "AMERICA",
    "BRAZIL": "AMERICA",
    "CANADA": "AMERICA",
    "EGYPT": "MIDDLE EAST",
    "ETHIOPIA": "AFRICA",
    "FRANCE": "EUROPE",
    "GERMANY": "EUROPE",
    "INDIA": "ASIA",
    "INDONESIA": "ASIA",
    "IRAN": "MIDDLE EAST",
    "IRAQ": "MIDDLE EAST",
    "JAPAN": "ASIA",
    "JORDAN": "MIDDLE EAST",
    "KENYA": "AFRICA",
    "MOROCCO": "AFRICA",
    "MOZAMBIQUE": "AFRICA",
    "PERU": "AMERICA",
    "CHINA": "ASIA",
    "ROMANIA": "EUROPE",
    "SAUDI ARABIA": "MIDDLE EAST",
    "VIETNAM": "ASIA",
    "RUSSIA": "EUROPE",
    "UNITED KINGDOM": "EUROPE",
    "UNITED STATES": "AMERICA",
}
"""Nations in the order of their keys, with their regions."""
COUNTRY_CODES = tuple(str(10 + key) for key in range(len(NATIONS)))  # phone numbers begin with one
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
SHIP_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
TYPE_SYLLABLES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINER_SYLLABLES = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
)
_COLORS = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished
chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick
floral forest frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender
lawn lemon light lime linen magenta maroon medium metallic midnight mint misty moccasin navajo navy olive
orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy
seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white
yellow
"""
COLORS = tuple(_COLORS.split())


def draw_parameters(seed: Sequence[int], thousandths: int) -> dict[int, Parameters]:
    """Return the values of all queries of a stream, at a scale in thousandths. Equal seeds, equal values."""
    random = np.random.default_rng(seed)
    return {number: _RULES[number](random, thousandths) for number in NUMBERS}


def _between(random: Random, low: int, high: int) -> int:
    """Return a random integer from ``low`` to ``high``, both included."""
    return int(random.integers(low, high, endpoint=True))


def _one(random: Random, among: Sequence[str]) -> str:
    return among[_between(random, 0, len(among) - 1)]


def _some(random: Random, among: Sequence[str], count: int) -> list[str]:
    """Return ``count`` distinct elements in random order."""
    return [among[index] for index in random.permutation(len(among))[:count]]


def _month(random: Random, first: tuple[int, int], last: tuple[int, int]) -> str:
    """Return the first day of a random month between two (year, month) pairs, both included."""
    months = _between(random, first[0] * 12 + first[1] - 1, last[0] * 12 + last[1] - 1)
    return date(months // 12, months % 12 + 1, 1).isoformat()


def _year(random: Random) -> str:
    return f"{_between(random, 1993, 1997)}-01-01"


def _brand(random: Random) -> str:
    return f"Brand#{_between(random, 1, 5)}{_between(random, 1, 5)}"


def _syllables(random: Random, syllables: Sequence[Sequence[str]]) -> str:
    return " ".join(_one(random, one) for one in syllables)


def _q1(random: Random, _: int) -> Parameters:
    return {"delta": str(_between(random, 60, 120))}


def _q2(random: Random, _: int) -> Parameters:
    size, kind = _between(random, 1, 50), _one(random, TYPE_SYLLABLES[2])
    return {"size": str(size), "type": kind, "region": _one(random, REGIONS)}


def _q3(random: Random, _: int) -> Parameters:
    day = date(1995, 3, 1) + timedelta(days=_between(random, 0, 30))
    return {"segment": _one(random, SEGMENTS), "date": day.isoformat()}


def _q4(random: Random, _: int) -> Parameters:
    return {"date": _month(random, (1993, 1), (1997, 10))}


def _q5(random: Random, _: int) -> Parameters:
    return {"region": _one(random, REGIONS), "date": _year(random)}


def _q6(random: Random, _: int) -> Parameters:
    discount, quantity = _between(random, 2, 9), _between(random, 24, 25)
    return {"date": _year(random), "discount": f"0.0{discount}", "quantity": str(quantity)}


def _q7(random: Random, _: int) -> Parameters:
    one, other = _some(random, [*NATIONS], 2)
    return {"nation1": one, "nation2": other}


def _q8(random: Random, _: int) -> Parameters:
    nation = _one(random, [*NATIONS])
    return {"nation": nation, "region": NATIONS[nation], "type": _syllables(random, TYPE_SYLLABLES)}


def _q9(random: Random, _: int) -> Parameters:
    return {"color": _one(random, COLORS)}


def _q10(random: Random, _: int) -> Parameters:
    return {"date": _month(random, (1993, 2), (1995, 1))}


def _q11(random: Random, thousandths: int) -> Parameters:
    return {"nation": _one(random, [*NATIONS]), "fraction": fraction(thousandths)}


def _q12(random: Random, _: int) -> Parameters:
    one, other = _some(random, SHIP_MODES, 2)
    return {"shipmode1": one, "shipmode2": other, "date": _year(random)}


def _q13(random: Random, _: int) -> Parameters:
    first = _one(random, ("special", "pending", "unusual", "express"))
    return {"word1": first, "word2": _one(random, ("packages", "requests", "accounts", "deposits"))}


def _q14(random: Random, _: int) -> Parameters:
    return {"date": _month(random, (1993, 1), (1997, 12))}


def _q16(random: Random, _: int) -> Parameters:
    sizes = _some(random, [str(size) for size in range(1, 51)], 8)
    kind = _syllables(random, TYPE_SYLLABLES[:2])
    return {"brand": _brand(random), "type": kind, **{f"size{i}": size for i, size in enumerate(sizes, 1)}}


def _q17(random: Random, _: int) -> Parameters:
    return {"brand": _brand(random), "container": _syllables(random, CONTAINER_SYLLABLES)}


def _q18(random: Random, _: int) -> Parameters:
    return {"quantity": str(_between(random, 312, 315))}


def _q19(random: Random, _: int) -> Parameters:
    brands = {f"brand{i}": _brand(random) for i in (1, 2, 3)}
    ranges = {1: (1, 10), 2: (10, 20), 3: (20, 30)}
    return {**brands, **{f"quantity{i}": str(_between(random, *ends)) for i, ends in ranges.items()}}


def _q20(random: Random, _: int) -> Parameters:
    return {"color": _one(random, COLORS), "date": _year(random), "nation": _one(random, [*NATIONS])}


def _q21(random: Random, _: int) -> Parameters:
    return {"nation": _one(random, [*NATIONS])}


def _q22(random: Random, _: int) -> Parameters:
    return {f"code{i}": code for i, code in enumerate(_some(random, COUNTRY_CODES, 7), 1)}


_RULES: dict[int, Callable[[Random, int], Parameters]] = {
    1: _q1,
    2: _q2,
    3: _q3,
    4: _q4,
    5: _q5,
    6: _q6,
    7: _q7,
    8: _q8,
    9: _q9,
    10: _q10,
    11: _q11,
    12: _q12,
    13: _q13,
    14: _q14,
    15: _q4,
    16: _q16,
    17: _q17,
    18: _q18,
    19: _q19,
    20: _q20,
    21: _q21,
    22: _q22,
}
"""Q15 has the months of Q4."""
