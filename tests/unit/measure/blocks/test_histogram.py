"""A histogram merges exactly, and what is computed from it is what its values give, within 3 digits.

Expected values come from numpy, from ``tail_mean`` of the values, and from the HdrHistogram of PyPI's package
``hdrhistogram`` 0.10.8, which wrote the texts below and reads those of ``encode``.
"""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pgdyno.measure.blocks.attribution import tail_mean
from pgdyno.measure.blocks.histogram import Histogram, decode, encode

THEIRS = "HISTFAAAADp4nJNpmSzMwMAgyQABzFCaEURcm7yEwf4DRICJhZXpNdcNlmZRJpa//EwbLVg2ezH93s7IBAAbEAvL"
THEIR_VALUES = [0, 1, 1, 5, 2047, 2048, 2049, 4096, 50000, 50000, 1234567, 3599999999, *[700] * 300]

latencies = arrays(np.int64, st.integers(1, 300), elements=st.integers(1, 10**10))


def same(one: Histogram, other: Histogram) -> bool:
    return np.array_equal(one.indexes, other.indexes) and np.array_equal(one.counts, other.counts)


@given(latencies, st.floats(0, 1))
def test_quantiles_and_the_tails_mean_are_within_3_digits_of_the_values_own(
    values: np.ndarray[tuple[int], np.dtype[np.int64]], share: float
) -> None:
    histogram = Histogram.of(values)
    assert histogram.count == values.size
    assert histogram.quantile(share) == pytest.approx(float(np.quantile(values, share)), rel=1e-3)
    assert histogram.tail_mean() == pytest.approx(tail_mean(values), rel=1e-3)


@given(st.lists(latencies, max_size=5))
def test_merging_is_counting_together(parts: list[np.ndarray[tuple[int], np.dtype[np.int64]]]) -> None:
    together = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    assert same(Histogram.merged(map(Histogram.of, parts)), Histogram.of(together))


@given(arrays(np.int64, st.integers(0, 50), elements=st.integers(0, 2**62)))
def test_what_was_encoded_is_decoded(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    assert same(decode(encode(Histogram.of(values))), Histogram.of(values))


def test_a_text_of_hdrhistograms_own_library_is_read() -> None:
    assert same(decode(THEIRS), Histogram.of(np.array(THEIR_VALUES)))


def test_the_bucket_of_a_value_is_that_of_hdrhistogram() -> None:
    # HdrHistogram(1, 3600000000, 3).get_lowest_equivalent_value of each value, in Python's package.
    values = [2047, 2049, 50001, 1234567, 3599999999]
    assert Histogram.of(np.array(values)).lowest.tolist() == [2047, 2048, 49984, 1233920, 3598712832]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not an HdrHistogram: unpack_from requires a buffer of at least 8 bytes"),
        ("?", "not an HdrHistogram: "),
        ("AAAA" * 40, "not an HdrHistogram: Error -3"),
        (THEIRS[:-8], "not a complete HdrHistogram of version 2"),
        # Of HdrHistogram(1, 1000, 2), whose buckets are others.
        ("HISTFAAAAB94nJNpmSzMwMDAxAABMJoRQjG/sP8AYXEyAQBJaANx", "integers with 3 significant digits"),
    ],
)
def test_any_other_text_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"not an? |its values") as caught:
        decode(text)
    assert why in str(caught.value)


@given(st.text(max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    with does_not_raise():
        try:
            decode(text)
        except ValueError:
            return
