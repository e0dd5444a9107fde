"""A plan as readable text: one line for a stage or node, for fixtures."""

from __future__ import annotations

from crown.ir.expression import Call, Column, Expression, Literal
from crown.ir.plan import (
    AggregateStage,
    BagStage,
    MapStage,
    Node,
    Plan,
    RecursionStage,
    SetOperationStage,
    Stage,
    TopStage,
    TreeStage,
    ValuesStage,
)


def render_plan(plan: Plan) -> str:
    columns = ", ".join(f"{c.name} {c.type}{'' if c.nullable else ' not null'}" for c in plan.columns)
    return "\n".join(
        [*(render_stage(stage) for stage in plan.stages), f"{'bag' if plan.bag else 'set'} of ({columns})"]
    )


def render_expression(expression: Expression) -> str:
    match expression:
        case Column(name):
            return name
        case Literal(value):
            return "NULL" if value is None else repr(value)
        case Call(function, arguments):
            return f"{function}({', '.join(map(render_expression, arguments))})"


def render_nodes(nodes: tuple[Node, ...]) -> str:
    lines = []

    def visit(index: int, depth: int) -> None:
        node = nodes[index]
        name = f"{node.name}({', '.join(node.variables)})" if node.atom is not None else node.name
        key = "" if node.parent is None else f" key ({', '.join(node.key)})"
        edge = "" if node.edge == "join" else f" {node.edge}"
        lines.append(f"{'  ' * depth}{name}{key}{edge}{' connex' if node.connex else ''}")
        for child, other in enumerate(nodes):
            if other.parent == index:
                visit(child, depth + 1)

    visit(0, 1)
    return "\n".join(lines)


def render_stage(stage: Stage) -> str:
    match stage:
        case TreeStage():
            extra = [f" where {render_expression(r)}" for r in stage.residual]
            extra += [f" ordered {c.lower} + {c.offset} {'<' if c.strict else '<='} {c.upper}" for c in stage.ordered]
            extra += [
                f"\n  {c.name} {c.type} = sum of "
                + (
                    " * ".join(f"{stage.atoms[f.atom].name}:{render_expression(f.expression)}" for f in c.factors)
                    or "1"
                )
                for c in stage.ring
            ]
            always = " always" if stage.always else ""
            head = f"{stage.id} = tree {stage.mode}{always} -> ({', '.join(stage.outputs)})"
            return head + "".join(extra) + "\n" + render_nodes(stage.nodes)
        case BagStage():
            atoms = ", ".join(f"{a.name}({', '.join(a.variables)})" for a in stage.atoms)
            return f"{stage.id} = bag {atoms} by ({', '.join(stage.order)}) -> ({', '.join(stage.outputs)})"
        case MapStage():
            shown = ", ".join(f"{c.name} = {render_expression(c.expression)}" for c in stage.columns)
            where = "" if stage.filter is None else f" where {render_expression(stage.filter)}"
            return f"{stage.id} = map {stage.input}{where} -> {shown}"
        case AggregateStage():
            shown = ", ".join(
                f"{a.name} = {a.function}({'*' if a.argument is None else render_expression(a.argument)})"
                for a in stage.aggregates
            )
            always = " always" if stage.always else ""
            return f"{stage.id} = aggregate{always} {stage.input} by ({', '.join(stage.group)}) -> {shown}"
        case SetOperationStage():
            return f"{stage.id} = {stage.operator}{' all' if stage.all else ''} {' '.join(stage.inputs)}"
        case TopStage():
            order = ", ".join(
                f"{render_expression(o.expression)}{' desc' if o.descending else ''}" for o in stage.order
            )
            return f"{stage.id} = top {stage.limit} offset {stage.offset} {stage.input} by {order}"
        case ValuesStage():
            rows = ", ".join(f"({', '.join(map(render_expression, row))})" for row in stage.rows)
            return f"{stage.id} = values ({', '.join(c.name for c in stage.columns)}) {rows}"
        case RecursionStage():
            bound = "" if stage.limit is None else f" in {stage.limit} rounds"
            step = "".join(f"\n  {render_stage(inner)}" for inner in stage.stages)
            return f"{stage.id} = recursion{' all' if stage.all else ''} {stage.base}{bound}{step}"
        case _:
            return f"{stage.id} = {type(stage).__name__.removesuffix('Stage').lower()} {stage.input}"
