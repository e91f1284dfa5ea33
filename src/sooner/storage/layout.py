"""The columns that Sooner adds to the rows it stores; no table may have its own of these names."""

from __future__ import annotations

BLOCK = "__block"
REPLICATE = "__replicate"
VERSION = "__version"
HASH = "__hash"
RESERVED = (BLOCK, REPLICATE, VERSION, HASH)
