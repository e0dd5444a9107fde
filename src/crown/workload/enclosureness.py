"""Enclosureness: how hard a sequence of updates is, by itself and under a given tree (definitions 5.1 and 5.6).

The enclosureness of a tuple is the largest number of disjoint lifespans inside its own. The law behind the
computation: of the intervals inside `[a, b]`, repeatedly taking the one that ends first is optimal, and the choice
after an interval depends on that interval alone. So the choices form a forest, and a query is the number of steps
along a path until the end passes `b`: with jumps of 1, 2, 4, ... steps O(log n) each, all queries at once.

Under a tree only updates below a tuple's node count, with effective lifespans: a child's row can make its parents
change only until the first deletion, or after the last insertion, below the child.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crown.ir.plan import Node
from crown.workload.lifespan import AFTER, BEFORE, Lifespans, Moments, concatenate

_NEVER = AFTER + 1


class DisjointIntervals:
    """Answers how many disjoint intervals of a fixed set fit into each of many others."""

    def __init__(self, intervals: Lifespans) -> None:
        order = np.lexsort((-intervals.end, intervals.start))
        start, end = intervals.start[order], intervals.end[order]
        if len(end):
            # An interval that contains another one is never needed: keep those that end before all
            # later ones.
            following = np.minimum.accumulate(np.r_[end[1:], _NEVER][::-1])[::-1]
            start, end = start[end < following], end[end < following]
        self.start: Moments = start
        self.end: Moments = np.r_[end, _NEVER]
        self.jumps: list[Moments] = []
        step = np.r_[np.searchsorted(start, end, side="right"), len(start)].astype(np.int64)
        while len(start) and step[0] < len(start):
            self.jumps.append(step)
            step = step[step]

    def first_end(self, start: Moments) -> Moments:
        """Return the earliest end of an interval that does not begin before `start`."""
        return self.end[np.searchsorted(self.start, start)]

    def inside(self, start: Moments, end: Moments) -> Moments:
        """For each `[start, end]` the largest number of disjoint intervals inside it, equal ones included."""
        at: Moments = np.searchsorted(self.start, start)
        fits = self.end[at] <= end
        count: Moments = fits.astype(np.int64)
        for power in reversed(range(len(self.jumps))):
            target = self.jumps[power][at]
            reached = fits & (self.end[target] <= end)
            at = np.where(reached, target, at)
            count += reached.astype(np.int64) << power
        return count


def tuple_enclosureness(spans: Lifespans) -> Moments:
    """Definition 5.1 for each tuple: the largest number of disjoint lifespans properly inside its own."""
    intervals = DisjointIntervals(spans)
    count = intervals.inside(spans.start, spans.end)
    # Where nothing ends earlier, the greedy choice is the tuple itself or, if it never ends, a
    # later one without end.
    alone = intervals.first_end(spans.start) == spans.end
    unending = spans.start[spans.end == AFTER]
    latest = unending.max() if len(unending) else BEFORE
    return np.where(alone, ((spans.end == AFTER) & (spans.start < latest)).astype(np.int64), count)


def enclosureness(spans: Lifespans) -> float:
    """Definition 5.1 of the whole sequence: the average over its tuples, at least 1."""
    if len(spans) == 0:
        return 1.0
    return max(1.0, float(tuple_enclosureness(spans).mean()))


def tree_enclosureness(nodes: Sequence[Node], atoms: Mapping[int, Lifespans]) -> float:
    """Definition 5.6: the enclosureness under a tree, given the lifespans of each atom's rows.

    Moments must be distinct across atoms (see `Lifespans.scaled`). Only relation nodes have tuples.
    """
    total = sum(len(spans) for spans in atoms.values())
    if total == 0:
        return 1.0
    return max(1.0, sum(int(counts.sum()) for counts in tree_tuple_enclosureness(nodes, atoms).values()) / total)


def tree_tuple_enclosureness(nodes: Sequence[Node], atoms: Mapping[int, Lifespans]) -> dict[int, Moments]:
    """Definition 5.6 for each tuple, by atom."""
    below = descendants(nodes)
    effective: dict[int, Lifespans] = {}
    result: dict[int, Moments] = {}
    for position in reversed(range(len(nodes))):
        atom = nodes[position].atom
        if atom is None:
            continue
        lower = [a for child in below[position] if (a := nodes[child].atom) is not None]
        spans = atoms[atom]
        effective[atom] = _effective(spans, concatenate([atoms[a] for a in lower]))
        result[atom] = DisjointIntervals(concatenate([effective[a] for a in lower])).inside(spans.start, spans.end)
    return result


def descendants(nodes: Sequence[Node]) -> list[list[int]]:
    """Return the proper descendants of each node, by position, except across optional edges, which no change climbs."""
    below: list[list[int]] = [[] for _ in nodes]
    for position in reversed(range(len(nodes))):
        parent = nodes[position].parent
        if parent is not None and nodes[position].edge != "optional":
            below[parent] += [position, *below[position]]
    return below


def _effective(spans: Lifespans, below: Lifespans) -> Lifespans:
    """Return both effective lifespans of each tuple, given all lifespans strictly below its node."""
    deletions = np.r_[np.sort(below.end[below.end < AFTER]), AFTER]
    insertions = np.r_[BEFORE, np.sort(below.start[below.start > BEFORE])]
    first_deletion = deletions[np.minimum(np.searchsorted(deletions, spans.start, side="right"), len(deletions) - 1)]
    last_insertion = insertions[np.maximum(np.searchsorted(insertions, spans.end, side="left") - 1, 0)]
    return concatenate(
        [
            Lifespans(spans.start, np.minimum(spans.end, first_deletion)),
            Lifespans(np.maximum(spans.start, last_insertion), spans.end),
        ]
    )
