"""Grouping keys for cells, such that Spark's hash partitioning puts each cell into its own shuffle partition."""

from __future__ import annotations

# Far more than cores; keys of very many cells would take forever to find.
MOST_CELLS = 10_000
_MASK = 0xFFFFFFFF


def spark_hash(value: int) -> int:
    """Spark SQL's `hash` of one INT: Murmur3 (x86, 32 bits) with seed 42, signed.

    >>> spark_hash(0), spark_hash(1)
    (933211791, -559580957)
    """
    mixed = _rotate(value * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    result = (_rotate(42 ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    result ^= 4
    result = (result ^ result >> 16) * 0x85EBCA6B & _MASK
    result = (result ^ result >> 13) * 0xC2B2AE35 & _MASK
    result ^= result >> 16
    return result - (1 << 32) if result & 0x80000000 else result


def cell_keys(cells: int) -> tuple[int, ...]:
    """Key i falls into partition i of `cells` shuffle partitions (and so into its own partition in any multiple).

    They only depend on the number of cells, never on the session: a key is the name of a cell's state.

    >>> [spark_hash(key) % 4 for key in cell_keys(4)]
    [0, 1, 2, 3]
    """
    keys: dict[int, int] = {}
    candidate = 0
    while len(keys) < cells:
        keys.setdefault(spark_hash(candidate) % cells, candidate)
        candidate += 1
    return tuple(keys[cell] for cell in range(cells))


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
