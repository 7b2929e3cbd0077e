"""Made-up values: different, in order, and of the original's form alone."""

from __future__ import annotations

import re
import uuid

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload.synthesis.generated_texts import addresses, alphabet_of, made_up_texts, uuids


@given(total=st.integers(1, 3000), length=st.integers(1, 40), seed=st.integers(0, 1 << 32))
def test_texts_are_different_and_in_the_order_of_their_numbers(total: int, length: int, seed: int) -> None:
    numbers = np.arange(total)
    texts = made_up_texts(numbers, total, np.full(total, length), alphabet_of(()), seed)
    assert texts == sorted(set(texts))
    assert {len(one) for one in texts} <= {length, 1, 2, 3}  # 26 ** 3 is more than 3000


@given(total=st.integers(1, 2000), seed=st.integers(0, 1 << 32))
def test_uuids_are_different_in_order_and_random_ones_by_their_form(total: int, seed: int) -> None:
    made = uuids(np.arange(total), total, seed)
    assert made == sorted(set(made))
    assert {uuid.UUID(one).version for one in made} == {4}


def test_addresses_are_private_ones() -> None:
    made = addresses(np.arange(1000), 1000)
    assert len(set(made)) == 1000
    assert all(re.fullmatch(r"10(\.\d{1,3}){3}", one) for one in made)
