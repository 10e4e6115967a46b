"""Counting codes agrees with `np.bincount`, for every type, length and number of values."""

from __future__ import annotations

import numpy as np
import pytest

from relaxdp.mechanisms.report_arrays import count_codes


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i1", "i8"])
@pytest.mark.parametrize("length", [0, 1, 1000, 1 << 17, (1 << 17) + 1, 400_001])
@pytest.mark.parametrize("size", [2, 10, 100])
def test_counts(dtype: str, length: int, size: int) -> None:
    codes = np.random.default_rng(length + size).integers(0, size, length).astype(dtype)
    if dtype == "u8":
        codes = codes.astype(np.int64)  # np.bincount takes no larger type than that
    assert count_codes(codes, size).tolist() == np.bincount(codes, minlength=size).tolist()
    assert count_codes(codes[::2], size).tolist() == np.bincount(codes[::2], minlength=size).tolist()
    with pytest.raises(ValueError, match="outside"):
        count_codes(np.append(codes, np.array([size], codes.dtype)), size)


def test_all_bytes_and_many_values() -> None:
    codes = np.random.default_rng(1).integers(0, 256, 300_000).astype(np.uint8)
    assert count_codes(codes, 256).tolist() == np.bincount(codes, minlength=256).tolist()
    wide = np.random.default_rng(2).integers(0, 70_000, 300_000).astype(np.uint32)
    assert count_codes(wide, 70_000).tolist() == np.bincount(wide, minlength=70_000).tolist()
