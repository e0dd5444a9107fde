"""Plans made by hand for the tests of explain: small ones to compare exactly, a large one to look at."""

from __future__ import annotations

from crown.ir.expression import Call, Column, Literal
from crown.ir.plan import Atom, BagStage, Binding, MapColumn, MapStage, Node, Plan, TreeStage, Variable
from crown.ir.tables import Table, TableColumn
from crown.plan.explain.report import (
    AddedOutput,
    AtomLoad,
    BagReport,
    Candidate,
    ConjunctionReport,
    Construct,
    Distribution,
    Guarantee,
    Report,
)
from crown.types import BOOLEAN, INT64

Row = tuple[str, str, str, str | None, bool, str]  # name, table, variables, parent, connex, edge


def make(
    rows: list[Row],
    outputs: str,
    *,
    bags: dict[str, list[str]] | None = None,
    filters: dict[str, int] | None = None,
    cells: int = 1,
) -> tuple[Plan, Report]:
    """A plan with one tree. A name in brackets is a generalised node; a table that is a key of `bags` is a bag."""
    bags = bags or {}
    filters = filters or {}
    names = [row[0] for row in rows]
    atoms: list[Atom] = []
    nodes: list[Node] = []
    for name, table, variables, parent, connex, edge in rows:
        own = tuple(variables.split())
        atom = None
        if table:
            atom = len(atoms)
            bound = filters.get(name)
            condition = Call("lt", (Column(own[0], INT64), Literal(bound, INT64)), BOOLEAN)
            bindings = tuple(Binding(v, Column(v, INT64)) for v in own)
            atoms.append(Atom(name, table, bindings, None if bound is None else condition))
        at = None if parent is None else names.index(parent)
        key = () if at is None else tuple(v for v in own if v in nodes[at].variables)
        nodes.append(Node(name, own, atom, at, key, connex, edge))  # type: ignore[arg-type]
    return _plan(atoms, nodes, tuple(outputs.split()), bags, cells)


def _plan(
    atoms: list[Atom], nodes: list[Node], outputs: tuple[str, ...], bags: dict[str, list[str]], cells: int
) -> tuple[Plan, Report]:
    variables = tuple(Variable(v, INT64, False) for v in dict.fromkeys(v for node in nodes for v in node.variables))
    bag_stages = tuple(
        BagStage(bag, variables[:3], tuple(Atom(m, "graph", ()) for m in members), ("a", "b", "c"), ("a", "b", "c"))
        for bag, members in bags.items()
    )
    tree = TreeStage("$tree", variables, tuple(atoms), tuple(nodes), outputs, "bag")
    columns = tuple(MapColumn(v, INT64, False, Column(v, INT64)) for v in outputs)
    plan = Plan(
        sql="SELECT DISTINCT x FROM t\nWHERE name = 'from <b>' AND x < 3",
        tables=tuple(
            Table(name, (TableColumn("src", INT64),))
            for name in dict.fromkeys([a.source for a in atoms if a.source not in bags] or ["graph"])
        ),
        stages=(*bag_stages, tree, MapStage("$result", "$tree", columns)) if bags else (tree,),
        columns=tuple(TableColumn(v, INT64, False) for v in outputs),
        bag=True,
    )
    candidate = Candidate(tuple(nodes), 2, 7.0)
    worse = Candidate(tuple(n for n in nodes if n.parent in (None, 0)), 3, 12.5)
    conjunction = ConjunctionReport(
        stage="$tree",
        query_class="cyclic" if bags else "free-connex",
        class_without_keys="cyclic" if bags else "acyclic",
        width=2 if bags else 1,
        height=2,
        atoms=tuple(a.name for a in atoms),
        outputs=outputs,
        added=(AddedOutput("m.id", "the primary key of message"), AddedOutput("z")),
        bags=tuple(BagReport(bag, tuple(members), ("a", "b", "c"), 2) for bag, members in bags.items()),
        candidates=(candidate, worse),
        considered=17,
        exhaustive=True,
        space="O(N)",
        delay="O(1)",
        guarantees=(
            Guarantee("insert_only", "O(1)", "insertions alone never undo what a row has set off"),
            Guarantee("fifo", "O(1)", "the tree has height 2, so no lifespan lies inside another one above it"),
            Guarantee("arbitrary", "O(λ)", "a row may come and go many times while a row above it lives"),
            Guarantee("declared", "O(1)", "all tables are FIFO"),
        ),
        why_not_better=("not q-hierarchical: b and c meet in e2, but neither's atoms contain the other's",),
        improvements=("declare the tables insert_only or fifo: then every update is O(1)",),
    )
    distribution = Distribution(
        cells=cells,
        dimensions=("b", "c") if cells > 1 else (),
        shares=(cells // 2, 2) if cells > 1 else (),
        loads=tuple(AtomLoad("$tree", a.name, 2, 0.25) for a in atoms) if cells > 1 else (),
        disjoint=cells == 1,
        why="there is one cell" if cells == 1 else "c is shared among cells but not in the output",
        merge=() if cells == 1 else ("distinct",),
    )
    constructs = (Construct("COUNT(DISTINCT)", "$tree", "O(1) per changed row", "sampling without enumeration"),)
    return plan, Report(plan.sql, (conjunction,), constructs if bags else (), distribution)


def three_hop(cells: int = 1) -> tuple[Plan, Report]:
    rows: list[Row] = [
        ("g2", "graph", "b c", None, True, "join"),
        ("g1", "graph", "a b", "g2", True, "join"),
        ("g3", "graph", "c d", "g2", True, "join"),
    ]
    return make(rows, "a b c d", filters={"g3": 100}, cells=cells)


def four_hop() -> tuple[Plan, Report]:
    rows: list[Row] = [
        ("[c]", "", "c", None, True, "join"),
        ("g2", "graph", "b c", "[c]", True, "join"),
        ("g1", "graph", "a b", "g2", True, "join"),
        ("g3", "graph", "c d", "[c]", True, "join"),
        ("g4", "graph", "d e", "g3", True, "join"),
    ]
    return make(rows, "a b c d e")


def dumbbell() -> tuple[Plan, Report]:
    rows: list[Row] = [
        ("g7", "graph", "c d", None, True, "join"),
        ("left", "$left", "a b c", "g7", True, "join"),
        ("right", "$right", "d e f", "g7", False, "join"),
    ]
    return make(rows, "a b c d", bags={"$left": ["g1", "g2", "g3"], "$right": ["g4", "g5", "g6"]})


def twelve_atoms() -> tuple[Plan, Report]:
    """Of every kind of node and edge, with names as long as real ones."""
    rows: list[Row] = [
        ("[orderkey, custkey]", "", "orderkey custkey", None, True, "join"),
        ("orders", "orders", "orderkey custkey order_date order_priority", "[orderkey, custkey]", True, "join"),
        ("[orderkey]", "", "orderkey", "[orderkey, custkey]", True, "join"),
        ("lineitem", "lineitem", "orderkey partkey suppkey quantity extended_price", "[orderkey]", True, "join"),
        ("part", "part", "partkey brand container", "lineitem", True, "join"),
        ("supplier", "supplier", "suppkey nation_supplier", "lineitem", False, "join"),
        ("n2", "nation", "nation_supplier region_supplier", "supplier", False, "join"),
        ("r2", "region", "region_supplier", "n2", False, "join"),
        ("partsupp", "partsupp", "partkey suppkey", "lineitem", False, "exists"),
        ("returned", "lineitem", "orderkey", "[orderkey]", False, "anti"),
        ("customer", "customer", "custkey nation_customer customer_name", "orders", True, "join"),
        ("n1", "nation", "nation_customer region_customer nation_name", "customer", True, "join"),
        ("r1", "region", "region_customer", "n1", False, "join"),
        ("complaint", "complaint", "custkey", "customer", False, "anti"),
    ]
    return make(
        rows,
        "orderkey custkey order_date partkey brand nation_name customer_name",
        filters={"orders": 19950315, "part": 23},
    )


def star(leaves: int) -> tuple[Plan, Report]:
    rows: list[Row] = [("[center]", "", "center", None, True, "join")]
    rows += [(f"spoke{i}", "graph", f"center leaf{i}", "[center]", True, "join") for i in range(leaves)]
    return make(rows, "center " + " ".join(f"leaf{i}" for i in range(leaves)))
