"""(Q ⋈ Q1) ∪ (Q ⋈ Q2) becomes Q ⋈ (Q1 ∪ Q2): what all branches join with is read and kept once.

This is iOLAP's factorization (appendix B, equation 2). It holds for UNION ALL and for every join in
which a row of Q1 or Q2 finds its partners in Q on its own: inner joins, and outer, semi and anti joins
that keep rows of Q1 and Q2. A join that keeps rows of Q keeps them once for each branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, product

from sqlglot import exp

from sooner.algebra.relation import Filter, Join, JoinKind, Project, Relation, Scan, Union
from sooner.algebra.scalar import (
    Item,
    Scalar,
    all_of,
    bare,
    column,
    columns_of,
    conjuncts,
    is_column,
    substitute,
)
from sooner.analysis.deterministic import is_deterministic
from sooner.analysis.normal_form import Form, normal_form
from sooner.analysis.type_term import type_term


def factor_unions(plan: Relation) -> Relation:
    """Join once where branches of a UNION ALL join with the same rows."""
    # Each round leaves fewer joins; the partners' union is a union whose branches may share more.
    while (new := _factored(plan)) is not plan:
        plan = new
    return plan


def _factored(plan: Relation, is_branch: bool = False) -> Relation:
    is_union = isinstance(plan, Union)
    new = plan.with_children(*(_factored(child, is_union) for child in plan.children))
    if not is_union or is_branch:
        return new
    branches = [_branch(relation) for relation in _flat(new)]
    number = len(branches)
    while _merge(branches):
        pass
    return new if len(branches) == number else reduce(Union, (one.plan for one in branches))


def _flat(plan: Relation) -> Iterator[Relation]:
    if isinstance(plan, Union):
        yield from _flat(plan.left)
        yield from _flat(plan.right)
    else:
        yield plan


def _merge(branches: list[_Branch]) -> bool:
    """Make one branch of the first two that share something, if there are any."""
    for first, second in combinations(range(len(branches)), 2):
        for one, other in product(branches[first].views, branches[second].views):
            both = _joined_once(one, other)
            if both is not None:
                branches[first] = both
                del branches[second]
                return True
    return False


@dataclass(frozen=True)
class _View:
    """A branch as a join of what may be ``shared`` with a ``partner`` that is its own.

    ``kind`` says what must be the same in another branch: the join, what is shared and the tables of the
    partner. Above the join stand ``filters`` and then ``items``; a condition on the partner alone is in it.
    """

    kind: Form
    join: Join
    shared: Relation
    partner: Relation
    on: tuple[Scalar, ...]
    filters: tuple[Scalar, ...]
    items: tuple[Item, ...]


@dataclass(frozen=True)
class _Branch:
    """A branch of a union, and ways to see it as a join; none if it is something else."""

    plan: Relation
    views: tuple[_View, ...] = ()


def _branch(plan: Relation) -> _Branch:
    items = tuple(Item(name, column(name)) for name in plan.names)
    filters: tuple[Scalar, ...] = ()
    node = plan
    while isinstance(node, Filter | Project):
        if isinstance(node, Filter):
            filters = conjuncts(node.condition) + filters
        else:
            meant = {item.name: item.scalar for item in node.items}
            filters = tuple(substitute(part, meant) for part in filters)
            items = tuple(Item(i.name, bare(substitute(i.scalar, meant))) for i in items)
        node = node.child
    if not isinstance(node, Join):
        return _Branch(plan)
    scalars = (*conjuncts(node.condition), *filters, *(item.scalar for item in items))
    if not all(map(is_deterministic, scalars)):
        return _Branch(plan)
    return _Branch(plan, tuple(_views(node, filters, items)))


def _views(join: Join, filters: tuple[Scalar, ...], items: tuple[Item, ...]) -> Iterator[_View]:
    for shared, partner in _sides(join):
        form = normal_form(shared)
        if form is None:
            continue
        on: tuple[Scalar, ...] = () if join.condition is None else (join.condition,)
        own, above = _split(filters, partner)
        if join.kind is JoinKind.INNER:
            more, on = _split(conjuncts(join.condition), partner)
            own = more + own
        kind = (join.kind, _tables(partner), form)
        yield _View(kind, join, shared, _filtered(partner, own), on, above, items)


def _sides(join: Join) -> tuple[tuple[Relation, Relation], ...]:
    """What may be shared, and its partner: the side whose rows may be kept for want of a pair."""
    match join.kind:
        case JoinKind.INNER:
            return (join.left, join.right), (join.right, join.left)
        case JoinKind.RIGHT:
            return ((join.left, join.right),)
        case JoinKind.FULL:
            return ()
    return ((join.right, join.left),)


def _tables(plan: Relation) -> Form:
    """The tables of a partner and how they are put together.

    A union of streamed rows with others cannot be streamed, though each of them can be joined with a
    streamed table: only partners that are alike come into one union.
    """
    below = tuple(_tables(child) for child in plan.children)
    match plan:
        case Scan():
            return (plan.table,)
        case Filter() | Project():
            return below[0]
        case Union() if below[0] == below[1]:
            return below[0]
        case Join():
            return (plan.kind, *below)
    return (type(plan), *below)


def _split(
    parts: tuple[Scalar, ...], relation: Relation
) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...]]:
    """The conditions that read columns of the relation and no others, and the rest."""
    used = [(part, columns_of(part)) for part in parts]
    own = tuple(part for part, names in used if names and names <= relation.name_set)
    return own, tuple(part for part, names in used if not names or names - relation.name_set)


def _joined_once(one: _View, other: _View) -> _Branch | None:
    """Both branches by one join; ``None`` if they do not use what is shared in the same way."""
    paired = _paired(one, other) if one.kind == other.kind else None
    if paired is None:
        return None
    partner = Union(_projected(one.partner, paired.ours), _projected(other.partner, paired.theirs))
    left, right = (one.shared, partner) if one.shared is one.join.left else (partner, one.shared)
    join = Join(left, right, one.join.kind, all_of(one.on))
    plan = _projected(_filtered(join, one.filters), paired.items)
    return _Branch(plan, (replace(one, join=join, partner=partner, items=paired.items),))


def _filtered(plan: Relation, parts: tuple[Scalar, ...]) -> Relation:
    condition = all_of(parts)
    return plan if condition is None else Filter(plan, condition)


def _projected(plan: Relation, items: tuple[Item, ...]) -> Relation:
    passed_on = [item.name for item in items if item.scalar == column(item.name)]
    same = len(passed_on) == len(items) and tuple(passed_on) == plan.names
    return plan if same else Project(plan, items)


@dataclass(frozen=True)
class _Paired:
    """What the partners' union has from each of them, and what stands above the one join."""

    ours: tuple[Item, ...]
    theirs: tuple[Item, ...]
    items: tuple[Item, ...]


def _paired(one: _View, other: _View) -> _Paired | None:
    """The columns of both partners that stand in the same places; ``None`` if these differ."""
    if (len(one.on), len(one.filters)) != (len(other.on), len(other.filters)):
        return None
    shared = dict(zip(other.shared.names, one.shared.names, strict=True))
    names = dict(shared)
    for a, b in zip(one.on + one.filters, other.on + other.filters, strict=True):
        if not _same_place(a, b, one, other, names):
            return None
    items: list[Item] = []
    unlike: list[tuple[Item, Item]] = []
    for our, their in zip(one.items, other.items, strict=True):
        if _same_place(our.scalar, their.scalar, one, other, names):
            items.append(our)
            continue
        pair = _carried(our, one.partner), _carried(their, other.partner)
        if pair[0] is None or pair[1] is None:
            return None
        unlike.append((pair[0], pair[1]))
        items.append(Item(our.name, column(pair[0].name)))
    theirs = {new: old for old, new in names.items() if old not in shared}
    alike = [(_passed(n), _passed(theirs[n])) for n in one.partner.names if n in theirs]
    return _union_of(alike + unlike, tuple(items), one, other)


def _same_place(a: Scalar, b: Scalar, one: _View, other: _View, names: dict[str, str]) -> bool:
    """Whether both are one scalar once the columns there have their ``names`` here.

    Columns of the partners that are not yet among the names get theirs by where they stand.
    """
    ours = [node.name for node in a.find_all(exp.Column) if node.name in one.partner.name_set]
    theirs = [node.name for node in b.find_all(exp.Column) if node.name in other.partner.name_set]
    if len(ours) != len(theirs):
        return False
    new = {**dict(zip(theirs, ours, strict=True)), **names}
    one_to_one = len(set(new.values())) == len(new)
    if not one_to_one or substitute(b, {old: column(name) for old, name in new.items()}) != a:
        return False
    names |= new
    return True


def _carried(item: Item, partner: Relation) -> Item | None:
    """What a partner can have as a column. Not a sum, which may fail for rows that find no pair."""
    if isinstance(item.scalar, exp.Literal):
        return item
    if is_column(item.scalar) and item.scalar.name in partner.name_set:
        return _passed(item.scalar.name)
    return None


def _passed(name: str) -> Item:
    return Item(name, column(name))


def _union_of(
    pairs: list[tuple[Item, Item]], items: tuple[Item, ...], one: _View, other: _View
) -> _Paired | None:
    """The pairs as columns of a union, if each has a name of its own and is of one type."""
    names, others = {a.name for a, _ in pairs}, {b.name for _, b in pairs}
    if not 0 < len(names) == len(others) == len(pairs) or names & one.shared.name_set:
        return None
    for a, b in pairs:
        term = type_term(a.scalar, one.partner)
        if term is None or term != type_term(b.scalar, other.partner):
            return None
    return _Paired(tuple(a for a, _ in pairs), tuple(b for _, b in pairs), items)
