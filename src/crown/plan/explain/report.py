"""The planner's findings: the facts that explain shows. Plain frozen data, apart from the Plan the kernel reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from crown.ir.plan import Node
from crown.ir.serial import decode, encode
from crown.ir.tables import Profile

QueryClass: TypeAlias = OneOf["q-hierarchical", "free-connex", "acyclic", "cyclic"]


@dataclass(frozen=True)
class Guarantee:
    """The cost of one update when every changing table has this profile; `declared`: as the tables say themselves."""

    profile: Profile | OneOf["declared"]
    update: str  # "O(1)", "O(λ)", "O(N)", ...
    why: str


@dataclass(frozen=True)
class Candidate:
    """A tree that was considered. Candidates come best first; the first one is the plan's."""

    nodes: tuple[Node, ...]
    height: int  # relation nodes on the longest path
    cost: float  # sum over atoms of depth times updates


@dataclass(frozen=True)
class AddedOutput:
    """A variable that is maintained as output although the query does not select it, so that the tree is free-connex.

    `determined_by` names the key that keeps the result linear; empty when nothing does.
    """

    variable: str
    determined_by: str = ""


@dataclass(frozen=True)
class BagReport:
    """A bag of a cyclic query: its atoms are joined by delta joins and feed the tree as one relation."""

    stage: str
    atoms: tuple[str, ...]
    variables: tuple[str, ...]
    width: int  # least number of atoms that cover its variables


@dataclass(frozen=True)
class ConjunctionReport:
    """One conjunction, that is one tree stage."""

    stage: str  # id of its tree stage
    query_class: QueryClass  # with primary keys as functional dependencies
    class_without_keys: QueryClass
    width: int  # 1 when acyclic
    height: int
    atoms: tuple[str, ...]
    outputs: tuple[str, ...]  # as asked
    added: tuple[AddedOutput, ...]
    bags: tuple[BagReport, ...]
    candidates: tuple[Candidate, ...]  # the best ones, best first
    considered: int  # how many trees were compared
    exhaustive: bool  # all of them, or a bounded search
    space: str  # "O(N)", "O(N^2)", ...
    delay: str  # of enumeration
    guarantees: tuple[Guarantee, ...]
    why_not_better: tuple[str, ...]
    improvements: tuple[str, ...]  # what would make it better


@dataclass(frozen=True)
class Construct:
    """A construct beyond a plain conjunction: what it costs and which guarantee is lost, if any."""

    name: str  # "COUNT(DISTINCT)", "NOT EXISTS", "EXCEPT", "residual predicate", ...
    stage: str
    cost: str
    loses: str = ""


@dataclass(frozen=True)
class AtomLoad:
    """Into how many cells a row of the atom goes, and the share of all rows of the atom that one cell gets."""

    stage: str
    atom: str
    copies: int
    fraction: float


@dataclass(frozen=True)
class Distribution:
    cells: int
    dimensions: tuple[str, ...]
    shares: tuple[int, ...]
    loads: tuple[AtomLoad, ...]
    disjoint: bool  # the cells' outputs: their union is the view
    why: str  # why (not) disjoint
    merge: tuple[str, ...]  # kinds of the stages that combine the cells' outputs


@dataclass(frozen=True)
class Report:
    sql: str
    conjunctions: tuple[ConjunctionReport, ...]
    constructs: tuple[Construct, ...]
    distribution: Distribution


def report_to_json(report: Report) -> str:
    """Return the report as JSON text."""
    return json.dumps(encode(report), allow_nan=False)


def report_from_json(text: str) -> Report:
    """Return the report that `report_to_json` wrote."""
    report = decode(Report, json.loads(text))
    assert isinstance(report, Report)
    return report
