"""Spark's ``xxhash64`` of whole numbers, a column at a time: the hash of ``hashing.py`` without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_SEED = 42  # where Spark starts
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def key_hashes(salt: int, keys: Sequence[NDArray[np.int64]]) -> NDArray[np.uint64]:
    """``xxhash64(salt, keys…)`` of each row, as the unsigned number that orders a scramble.

    >>> [hex(value) for value in key_hashes(0, [np.array([1, 2])])]
    ['0x72eec4cc54751688', '0x5fea6284a2151548']
    """
    hashes = _hashed(np.array([salt], np.int64), np.array([_SEED], np.uint64))
    for key in keys:
        hashes = _hashed(key, hashes)
    return hashes


def _hashed(values: NDArray[np.int64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """XXH64 of eight bytes each; arrays wrap around silently, as the algorithm wants."""
    first, second, third, fourth, fifth = (np.uint64(prime) for prime in _PRIMES)
    mixed = _rotated(values.view(np.uint64) * second, 31) * first
    hashes = _rotated((seeds + (fifth + np.uint64(8))) ^ mixed, 27) * first + fourth
    hashes ^= hashes >> np.uint64(33)
    hashes *= second
    hashes ^= hashes >> np.uint64(29)
    hashes *= third
    hashes ^= hashes >> np.uint64(32)
    return hashes


def _rotated(values: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
