"""Convert a branch to a `Conjunction`: sort its levels, choose and name terms as variables, build the atoms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from crown import types
from crown.ir.expression import Call, Column, Expression, Literal, column_set, fails_on_its_own
from crown.ir.nullability import may_be_null
from crown.ir.plan import Atom, Binding, Variable
from crown.ir.query import Condition, Conjunction, Named, OptionalAtom
from crown.sql.context import Context
from crown.sql.normalise.atoms import lower, null_rejected, with_not_null
from crown.sql.normalise.equalities import fixed_term, stripped
from crown.sql.normalise.levels import Level, build_level, never_holds
from crown.sql.normalise.names import Namer
from crown.sql.normalise.optional import settled
from crown.sql.relation import Branch, Source, atoms_of
from crown.sql.scalar.fold import FALSE, TRUE, conjunction, conjuncts, fold
from crown.types import BOOLEAN, DataType


@dataclass(frozen=True)
class Wanted:
    """A column that the surrounding Select sees, over source columns.

    With `bind` it is a separate variable if it reads only one atom, even if its inputs are variables
    too: grouping and DISTINCT then need nothing finer.
    """

    name: str
    expression: Expression
    bind: bool = False


def build_conjunctions(
    context: Context, branches: Iterable[tuple[Branch, Sequence[Wanted]]]
) -> tuple[Conjunction, ...]:
    """Return the conjunctions of the branches that can have rows; of the first one if none can."""
    cases: list[tuple[Branch, list[Wanted]]] = []
    for branch, wanted in branches:
        for case, expressions in settled(context, branch, [w.expression for w in wanted]):
            cases.append((case, [replace(w, expression=e) for w, e in zip(wanted, expressions, strict=True)]))
    for branch, wanted in cases:
        context.count_parts((*branch.predicates, *(w.expression for w in wanted)))
    living = [case for case in cases if not never_holds(case[0].predicates)] or cases[:1]
    return tuple(_build_conjunction(context, branch, wanted) for branch, wanted in living)


def _build_conjunction(context: Context, branch: Branch, wanted: Sequence[Wanted]) -> Conjunction:
    level = build_level(context, branch)
    if level.never:
        # No row can satisfy the predicates: the conjunction stays, with an atom that lets nothing
        # through.
        level.filters[branch.atoms[0].id] = {FALSE: None}
    _choose_terms(context, level, wanted)
    writer = _Writer(context)
    writer.name_classes(level)
    atoms = writer.atoms(level, {})
    conditions = tuple(writer.condition(child, level) for child in level.children)
    atoms, conditions = with_not_null(atoms, conditions)
    optional = tuple(writer.optional(child, level) for child in level.optional)
    return Conjunction(
        variables=writer.variables(atoms, conditions, optional),
        atoms=atoms,
        columns=tuple(Named(w.name, _over_variables(level, w.expression)) for w in wanted),
        conditions=conditions,
        residual=tuple(_over_variables(level, e) for e in level.residual),
        origins=branch.origins,
        reasons=branch.reasons,
        optional=optional,
    )


def _choose_terms(context: Context, level: Level, wanted: Sequence[Wanted]) -> None:
    """Put every term that must be a variable into `level.needed`."""
    plain = {m.name for members in level.classes.classes() if _spans(members) for m in members if isinstance(m, Column)}
    shown = [(w.expression, w.bind, w.name) for w in wanted] + [(e, False, "") for e in level.residual]
    for expression, _, _ in shown:
        for term in _maximal_terms(expression):
            if isinstance(term, Column):
                plain.add(term.name)

    def is_null_without_row(term: Expression) -> bool:
        """Whether the term may be computed in the atom: where that is optional, the atom shows NULL without a row."""
        return not level.is_optional(term) or context.without_rows(term, atoms_of(term), frozenset()) == Literal(
            None, term.type
        )

    def choose(expression: Expression, bind: bool, name: str) -> None:
        touched = atoms_of(expression)
        term = stripped(expression)
        if not touched:
            return
        if len(touched) == 1 and is_null_without_row(term) and not fails_on_its_own(term):
            holder = level.holder(term)
            finer = column_set(term) <= plain
            if isinstance(term, Column) or term in holder.classes or bind or not finer:
                holder.need(term, name)
                return
        assert isinstance(expression, Call)
        for argument in expression.arguments:
            choose(argument, False, "")

    for expression, bind, name in shown:
        choose(expression, bind, name)


def _maximal_terms(expression: Expression) -> Iterator[Expression]:
    """Yield the largest parts of an expression that read one atom, without widening casts."""
    touched = atoms_of(expression)
    if len(touched) == 1:
        yield stripped(expression)
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _maximal_terms(argument)


def _spans(members: list[Expression]) -> bool:
    return len({atom for m in members for atom in atoms_of(m)}) > 1


def _over_variables(level: Level, expression: Expression) -> Expression:
    """Return the expression with its terms replaced by their variables."""
    if not atoms_of(expression):
        return expression
    holder = level.holder(expression)
    if expression in holder.classes:
        variable = holder.variables.get(holder.classes.find(expression))
        if variable is not None:
            type_ = holder.classes.type_of(expression)
            return cast_value(Column(variable, type_), expression.type)
    assert isinstance(expression, Call), expression
    arguments = tuple(_over_variables(level, a) for a in expression.arguments)
    if expression.function == "cast":
        return cast_value(_uncast(arguments[0], expression.type), expression.type)
    return replace(expression, arguments=arguments)


def _uncast(expression: Expression, target: DataType) -> Expression:
    """Return a variable that was narrowed to its column's type only to be widened again."""
    if isinstance(expression, Call) and expression.function == "cast" and expression.arguments[0].type == target:
        return expression.arguments[0]
    return expression


def cast_value(expression: Expression, type_: DataType) -> Expression:
    if expression.type == type_:
        return expression
    return fold(Call("cast", (expression,), type_), lambda _: True)


class _Writer:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.namer = Namer()
        self.source_of_atom: dict[str, Source] = {}

    def name_classes(self, level: Level) -> None:
        aliases = {s.id: s.name for s in level.branch.atoms}
        for members in level.classes.classes():
            representative = level.classes.find(members[0])
            hints = [level.needed[m] for m in members if m in level.needed]
            if representative not in level.variables and (hints or _spans(members)):
                suggestion = next(filter(None, hints), "")
                level.variables[representative] = self.namer.variable(members, aliases, suggestion)

    def atoms(self, level: Level, extra: dict[str, list[tuple[str, Expression]]]) -> tuple[Atom, ...]:
        """Return the level's atoms; `extra` binds further variables of the level around it, by atom."""
        bound: dict[str, list[tuple[str, Expression]]] = {s.id: [] for s in level.branch.atoms}
        fixed = {term for filters in level.filters.values() for p in filters if (f := fixed_term(p)) for term in f[:1]}
        for members in level.classes.classes():
            _push_constant(level, members, fixed)
            variable = level.variables.get(level.classes.find(members[0]))
            by_atom: dict[str, list[Expression]] = {}
            for member in members:
                by_atom.setdefault(next(iter(atoms_of(member))), []).append(member)
            for atom, terms in by_atom.items():
                for other in terms[1:]:
                    _keep_equal(level, atom, terms[0], other)
                if variable is not None:
                    bound[atom].append((variable, cast_value(terms[0], level.classes.type_of(terms[0]))))
        for atom, pairs in extra.items():
            bound[atom] += pairs
        return tuple(self._atom(level, source, bound[source.id]) for source in level.branch.atoms)

    def _atom(self, level: Level, source: Source, bound: list[tuple[str, Expression]]) -> Atom:
        self.context.use_table(source.source)
        parts = [part for p in level.filters.get(source.id, ()) for part in conjuncts(p)]
        condition = conjunction([lower(self.context, source, p) for p in parts])
        bindings = [Binding(v, lower(self.context, source, e)) for v, e in dict.fromkeys(bound)]
        name = self.namer.atom(source.name)
        self.source_of_atom[name] = source
        return Atom(
            name=name,
            source=source.source,
            bindings=tuple(sorted(bindings, key=lambda b: self.namer.order(b.variable))),
            filter=None if condition == TRUE else condition,
        )

    def condition(self, level: Level, parent: Level) -> Condition:
        """Return the condition's atoms, with the outer variables bound to the inner terms that must equal them."""
        extra: dict[str, list[tuple[str, Expression]]] = {}
        for outer_term, inner_term in level.correlated:
            variable = parent.variables[parent.classes.find(outer_term)]
            type_ = parent.classes.type_of(outer_term)
            if isinstance(inner_term, Literal):
                first = level.branch.atoms[0].id
                extra.setdefault(first, []).append((variable, cast_value(inner_term, type_)))
                continue
            constant = parent.classes.constant_of(outer_term)
            if constant is not None and level.classes.constant_of(inner_term) is None:
                level.classes.fix(inner_term, constant)
            representative = level.classes.find(inner_term)
            level.classes.widen(inner_term, type_)
            if representative not in level.variables and level.classes.type_of(inner_term) == type_:
                level.variables[representative] = variable
            elif level.variables.get(representative) != variable:
                atom = next(iter(atoms_of(inner_term)))
                extra.setdefault(atom, []).append((variable, cast_value(inner_term, type_)))
        self.name_classes(level)
        atoms = self.atoms(level, extra)
        return Condition(atoms, level.negated, tuple(self.condition(child, level) for child in level.children))

    def optional(self, level: Level, parent: Level) -> OptionalAtom:
        """Return the optional atom. Its key has the variables of the outer level; its other columns have their own."""
        (source,) = level.branch.atoms
        key: list[tuple[str, Expression]] = []
        for outer_term, inner_term in level.correlated:
            variable = parent.variables[parent.classes.find(outer_term)]
            constant = parent.classes.constant_of(outer_term)
            if constant is not None and not isinstance(inner_term, Literal):
                level.classes.fix(inner_term, constant)
            key.append((variable, cast_value(inner_term, parent.classes.type_of(outer_term))))
        self.name_classes(level)
        (atom,) = self.atoms(level, {source.id: key})
        atom = replace(atom, not_null=tuple(dict.fromkeys(variable for variable, _ in key)))
        below = tuple(self.optional(child, level) for child in level.optional)
        return OptionalAtom(atom, below, level.subquery)

    def variables(
        self, atoms: tuple[Atom, ...], conditions: tuple[Condition, ...], optional: tuple[OptionalAtom, ...]
    ) -> tuple[Variable, ...]:
        """Return all variables. One is nullable unless an atom of the conjunction itself rules that out."""
        found: dict[str, Variable] = {}
        for atom, outer in [(a, True) for a in atoms] + [(a, False) for a in _atoms_of_conditions(conditions)]:
            source, rejected = self.source_of_atom[atom.name], null_rejected(atom.filter)
            for binding in atom.bindings:
                may = binding.variable not in atom.not_null and may_be_null(
                    binding.expression,
                    lambda c, s=source, r=rejected: c not in r and self.context.nullable(s.column(c)),  # type: ignore[misc]
                )
                known = found.get(binding.variable)
                if known is None:
                    found[binding.variable] = Variable(binding.variable, binding.expression.type, may)
                elif known.nullable and not may and outer:
                    found[binding.variable] = replace(known, nullable=False)
        for atom in _optional_atoms(optional):
            for binding in atom.bindings:
                found.setdefault(binding.variable, Variable(binding.variable, binding.expression.type, True))
        return tuple(sorted(found.values(), key=lambda v: self.namer.order(v.name)))


def _atoms_of_conditions(conditions: tuple[Condition, ...]) -> Iterator[Atom]:
    for condition in conditions:
        yield from condition.atoms
        yield from _atoms_of_conditions(condition.conditions)


def _optional_atoms(optional: tuple[OptionalAtom, ...]) -> Iterator[Atom]:
    for one in optional:
        yield one.atom
        yield from _optional_atoms(one.optional)


def _push_constant(level: Level, members: list[Expression], fixed: set[Expression]) -> None:
    """Filter each member by the constant that the class equals, unless a filter fixes it already."""
    constant = level.classes.constant_of(members[0])
    if constant is None:
        return
    for member in members:
        common = types.common_type(member.type, constant.type)
        if common is None or member in fixed:
            continue
        if types.widens(constant.type, common) and types.widens(member.type, common):
            equal = (cast_value(member, common), cast_value(constant, common))
            level.keep(next(iter(atoms_of(member))), Call("eq", equal, BOOLEAN))


def _keep_equal(level: Level, atom: str, first: Expression, second: Expression) -> None:
    """Two terms of one atom in one class become a filter, unless the query already has it."""
    common = types.common_type(first.type, second.type) or first.type
    forms = [
        Call("eq", (cast_value(a, common), cast_value(b, common)), BOOLEAN)
        for a, b in ((first, second), (second, first))
    ]
    if not any(form in level.filters.get(atom, ()) for form in forms):
        level.keep(atom, forms[0])
