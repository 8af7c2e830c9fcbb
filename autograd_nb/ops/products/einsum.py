"""Einstein summation: an equation is planned once per shapes, then run as products of two operands, each one strided `bmm`.

Labels are ints: the 52 letters in PyTorch's order (A–Z, a–z), then one per dim that an ellipsis stands for, from the right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

from ...shapes import Layout, numel
from ...tensor import Tensor
from ..core.call_path import planned
from ..core.registry import public
from ..core.structured import tensor_argument
from ..reduce.sums import sum as sum_
from ..shape.shape import alias_view
from . import einsum_order
from .gemm import _bmm, _mm, multiplied
from .matmul import _same_dtype

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS = -1
_EXHAUSTIVE = 5  #: operands up to which every order of contraction is tried

Labels = tuple[int, ...]


def _name(label: int) -> str:
    return _LETTERS[label] if 0 <= label < 52 else "..."


# ------------------------------------------------------------------------------------------------------ reading


def _term(text: str, what: str) -> Labels:
    """Return the labels of one operand or of the output, `_ELLIPSIS` for an ellipsis."""
    out: list[int] = []
    i = 0
    while i < len(text):
        c = text[i]
        if c == " ":
            pass
        elif c == ".":
            if text[i : i + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {what} that is not part of any ellipsis (in {text!r})")
            if _ELLIPSIS in out:
                raise RuntimeError(f"einsum(): found '.' for {what} for which an ellipsis was already found (in {text!r})")
            out.append(_ELLIPSIS)
            i += 2
        elif c in _LETTERS:
            out.append(_LETTERS.index(c))
        else:
            raise RuntimeError(f"einsum(): {what}: invalid subscript {c!r} given in {text!r}, subscripts must be in [a-zA-Z]")
        i += 1
    return tuple(out)


@planned
def _parsed(equation: str) -> tuple[tuple[Labels, ...], Labels | None]:
    left, arrow, right = equation.partition("->")
    if "->" in right:
        raise RuntimeError(f"einsum(): expected one '->' in the equation {equation!r}")
    terms = tuple(_term(t, f"operand {k}") for k, t in enumerate(left.split(",")))
    return terms, (_term(right, "output") if arrow else None)


def _sublist(labels: Any, what: str) -> Labels:
    """Return a list of ints and Ellipsis as labels."""
    out = []
    for s in labels:
        if s is Ellipsis:
            if _ELLIPSIS in out:
                raise RuntimeError(f"einsum(): found more than one ellipsis for {what} (in {list(labels)})")
            out.append(_ELLIPSIS)
        elif isinstance(s, bool) or not isinstance(s, int):
            raise TypeError(f"einsum(): {what} subscripts must be ints or Ellipsis, got {type(s).__name__}")
        elif not 0 <= s < 52:
            raise ValueError(f"einsum(): subscript in subscript list is not within the valid range [0, 52): {s} ({what})")
        else:
            out.append(s)
    return tuple(out)


# ----------------------------------------------------------------------------------------------------- planning


class _Plan:
    """Labels of the operands and of the output with ellipses spelled out, the order of contraction, and for each of its steps the
    labels that are needed afterwards."""

    __slots__ = ("keeps", "order", "output", "terms", "wanted")

    def __init__(self, terms: tuple[Labels, ...], output: Labels, order: tuple[tuple[int, int], ...]):
        self.terms, self.output, self.order = terms, output, order
        self.wanted = frozenset(output)
        self.keeps: list[frozenset[int]] = []
        sets = [frozenset(t) for t in terms]
        for i, j in order:
            rest = [s for k, s in enumerate(sets) if k not in (i, j)]
            keep = self.wanted.union(*rest)
            self.keeps.append(keep)
            sets = [*rest, (sets[i] | sets[j]) & keep]


@planned
def _planned(
    terms: tuple[Labels, ...], output: Labels | None, shapes: tuple[tuple[int, ...], ...], strategy: str | None
) -> _Plan:
    stretched = [len(s) - (len(t) - (_ELLIPSIS in t)) for t, s in zip(terms, shapes, strict=True)]
    full: list[Labels] = []
    for k, (t, s, n) in enumerate(zip(terms, shapes, stretched, strict=True)):
        if n < 0 or (n and _ELLIPSIS not in t):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(t) - (_ELLIPSIS in t)}) "
                f"{'is more than' if n < 0 and _ELLIPSIS in t else 'does not match'} the number of dimensions ({len(s)}) for operand "
                f"{k}{'' if _ELLIPSIS in t else ' and no ellipsis was given'}"
            )
        full.append(tuple(x for label in t for x in (range(51 + n, 51, -1) if label == _ELLIPSIS else (label,))))
    sizes: dict[int, int] = {}
    for k, (t, s) in enumerate(zip(full, shapes, strict=True)):
        own: dict[int, int] = {}
        for label, n in zip(t, s, strict=True):
            if own.setdefault(label, n) != n:
                raise RuntimeError(
                    f"einsum(): subscript {_name(label)} is repeated for operand {k} but the sizes don't match, {n} != {own[label]}"
                )
        for label, n in own.items():
            have = sizes.setdefault(label, n)
            if n != have and n != 1 and have != 1:
                raise RuntimeError(
                    f"einsum(): subscript {_name(label)} has "
                    f"size {n} for operand {k} which does not broadcast with previously seen size {have}"
                )
            sizes[label] = n if have == 1 else have
    dots = tuple(range(51 + max([n for t, n in zip(terms, stretched, strict=True) if _ELLIPSIS in t], default=0), 51, -1))
    counts = Counter(label for t in full for label in t)
    if output is None:
        final = dots + tuple(sorted(label for label, n in counts.items() if n == 1 and label < 52))
    else:
        final = tuple(x for label in output for x in (dots if label == _ELLIPSIS else (label,)))
        for label in final:
            if final.count(label) > 1:
                raise RuntimeError(f"einsum(): output subscript {_name(label)} appears more than once in the output")
            if label not in counts:
                raise RuntimeError(
                    f"einsum(): output subscript {_name(label)} does not appear in the equation for any input operand"
                )
    return _Plan(tuple(full), final, _order(full, final, sizes, strategy))


def _order(terms: list[Labels], output: Labels, sizes: dict[int, int], strategy: str | None) -> tuple[tuple[int, int], ...]:
    """Return pairs of places in the shrinking list of operands; each pair's result goes to its end."""
    n = len(terms)
    if strategy is None or n < 3:
        return ((0, 1), *((0, n - 1 - k) for k in range(1, n - 1))) if n > 1 else ()
    try:
        import opt_einsum
    except ImportError:
        pass
    else:
        text = (
            ",".join("".join(map(opt_einsum.get_symbol, t)) for t in terms) + "->" + "".join(map(opt_einsum.get_symbol, output))
        )
        path = opt_einsum.contract_path(text, *(tuple(sizes[x] for x in t) for t in terms), optimize=strategy, shapes=True)[0]
        return tuple((pair[0], pair[1]) for pair in path if len(pair) > 1)
    sets = [frozenset(t) for t in terms]
    return (_best if n <= _EXHAUSTIVE else _greedy)(sets, frozenset(output), sizes)


def _volume(labels: frozenset[int], sizes: dict[int, int]) -> int:
    return numel(sizes[x] for x in labels)


def _joined(sets: list[frozenset[int]], i: int, j: int, output: frozenset[int]) -> list[frozenset[int]]:
    rest = [s for k, s in enumerate(sets) if k not in (i, j)]
    return [*rest, (sets[i] | sets[j]) & output.union(*rest)]


def _best(sets: list[frozenset[int]], output: frozenset[int], sizes: dict[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the order of fewest multiplications, found by trying all."""
    return _search(sets, output, sizes, float("inf"))[1]


def _search(
    sets: list[frozenset[int]], output: frozenset[int], sizes: dict[int, int], limit: float
) -> tuple[float, tuple[tuple[int, int], ...]]:
    """Return (multiplications, order) of the best that takes less than ``limit``."""
    if len(sets) == 1:
        return 0, ()
    found: tuple[Any, ...] = ()
    for i, j in combinations(range(len(sets)), 2):
        here = _volume(sets[i] | sets[j], sizes)
        if here < limit:
            more, path = _search(_joined(sets, i, j, output), output, sizes, limit - here)
            if here + more < limit:
                limit, found = here + more, ((i, j), *path)
    return limit, found


def _greedy(sets: list[frozenset[int]], output: frozenset[int], sizes: dict[int, int]) -> tuple[tuple[int, int], ...]:
    """Return each time the pair that shrinks memory most, of equals the one of fewest multiplications; pairs without a common label last."""
    path = []
    while len(sets) > 1:

        def cost(pair: tuple[int, int]) -> tuple[Any, ...]:
            a, b = sets[pair[0]], sets[pair[1]]  # noqa: B023
            result = _joined(sets, *pair, output)[-1]  # noqa: B023
            return not a & b, _volume(result, sizes) - _volume(a, sizes) - _volume(b, sizes), _volume(a | b, sizes)

        pair = min(combinations(range(len(sets)), 2), key=cost)
        sets = _joined(sets, *pair, output)
        path.append(pair)
    return tuple(path)


# -------------------------------------------------------------------------------------------------- contracting


def _diagonalised(x: Tensor, labels: Labels) -> tuple[Tensor, Labels]:
    """Return an operand whose dims of one label are joined into their diagonal."""
    if len(set(labels)) == len(labels):
        return x, labels
    own = list(labels)
    for label in [x for x, n in Counter(own).items() if n > 1]:
        while own.count(label) > 1:
            i = own.index(label)
            j = own.index(label, i + 1)
            x = x.diagonal(0, i, j)
            del own[j], own[i]
            own.append(label)
    return x, tuple(own)


def _without(x: Tensor, labels: Labels, keep: frozenset[int]) -> tuple[Tensor, Labels]:
    """Return an operand with the labels that nobody else needs summed away."""
    gone = tuple(d for d, label in enumerate(labels) if label not in keep)
    if not gone:
        return x, labels
    rest = tuple(label for label in labels if label in keep)
    return sum_(x, gone), rest


def _arranged(x: Tensor, labels: Labels, order: Labels) -> Tensor:
    return x if labels == order else x.permute([labels.index(label) for label in order])


class _Side:
    """All that is done to an operand before it is multiplied: dims summed, dims of size 1 dropped, dims reordered, then merged."""

    __slots__ = ("dropped", "order", "shape", "summed")

    def __init__(
        self, labels: Labels, layout: Layout, summed: Iterable[int], dropped: Iterable[int], groups: Sequence[Sequence[int]]
    ):
        self.summed = tuple(labels.index(t) for t in summed)
        rest = [t for t in labels if t not in summed]
        self.dropped = tuple(rest.index(t) for t in dropped)
        rest = [t for t in rest if t not in dropped]
        order = tuple(rest.index(t) for group in groups for t in group)
        self.order = None if order == tuple(range(len(order))) else order
        sizes = dict(zip(labels, layout.shape, strict=True))
        self.shape = tuple(numel(sizes.get(t, 1) for t in group) for group in groups)

    def __call__(self, x: Tensor) -> Tensor:
        if self.summed:
            x = sum_(x, self.summed)
        if self.dropped:
            x = x.squeeze(self.dropped)
        if self.order is not None:
            x = x.permute(self.order)
        return x if x.shape == self.shape else x.reshape(self.shape)


class _Step:
    """The way in which two operands of given layouts become one: labels of both are batch dims if somebody needs them (``keep``), else they
    are summed by the product; a label with a size of 1 on one side belongs to the other alone, and one of size 1 on both to none if it is summed."""

    __slots__ = ("left", "multiply", "result", "right", "shape", "swapped")

    def __init__(self, a: Labels, la: Layout, b: Labels, lb: Layout, keep: frozenset[int], output: Labels):
        size_a, size_b = dict(zip(a, la.shape, strict=True)), dict(zip(b, lb.shape, strict=True))
        both = set(a) & set(b)
        drop_a = [t for t in a if t in both and size_a[t] == 1 and (size_b[t] != 1 or t not in keep)]
        drop_b = [t for t in b if t in both and size_b[t] == 1 and (size_a[t] != 1 or t not in keep)]
        own_a, own_b = set(a).difference(drop_a), set(b).difference(drop_b)
        sum_a = [t for t in a if t in own_a and t not in own_b and t not in keep]
        sum_b = [t for t in b if t in own_b and t not in own_a and t not in keep]
        own_a.difference_update(sum_a)
        own_b.difference_update(sum_b)
        step_a, step_b = dict(zip(a, la.strides, strict=True)), dict(zip(b, lb.strides, strict=True))
        left = sorted((t for t in a if t in own_a and t not in own_b), key=lambda t: -step_a[t])
        right = sorted((t for t in b if t in own_b and t not in own_a), key=lambda t: -step_b[t])
        # dims of both in the order in which the larger operand holds them
        big = step_a if la.size >= lb.size else step_b
        common = sorted((t for t in a if t in own_a and t in own_b), key=lambda t: -big[t])
        batch, summed = [t for t in common if t in keep], [t for t in common if t not in keep]
        sizes = {**size_a, **size_b, **{t: n for t, n in size_a.items() if n != 1}}
        self.swapped = False
        if not summed:  # pointwise: every label of the result as a dim, of size 1 where an operand lacks it
            order = [t for t in output if t in own_a or t in own_b]
            order += [t for t in (*batch, *left, *right) if t not in order]
            self.multiply: Any = None
            self.left = _Side(a, la, sum_a, drop_a, [[t] if t in own_a else [] for t in order])
            self.right = _Side(b, lb, sum_b, drop_b, [[t] if t in own_b else [] for t in order])
            self.result = tuple(order)
            self.shape = tuple(sizes.get(t, 1) for t in order)
            return
        groups_a, groups_b = [batch, left, summed], [batch, summed, right]
        if left and output and output[-1] in left:  # so that the result needs no transposing
            self.swapped = True
            groups_a, groups_b = [batch, summed, left], [batch, right, summed]
            left, right = right, left
        self.multiply = _bmm if batch else _mm
        skip = 0 if batch else 1
        self.left = _Side(a, la, sum_a, drop_a, groups_a[skip:])
        self.right = _Side(b, lb, sum_b, drop_b, groups_b[skip:])
        self.result = tuple(batch + left + right)
        self.shape = tuple(sizes[t] for t in self.result)

    def __call__(self, x: Tensor, z: Tensor) -> Tensor:
        x, z = self.left(x), self.right(z)
        if self.multiply is None:
            return x * z
        y = multiplied(self.multiply, *((z, x) if self.swapped else (x, z)), lying=False)
        return y if y.shape == self.shape else y.reshape(self.shape)


_step = planned(_Step)


def _strategy(operands: tuple[Tensor, ...]) -> str | None:
    """Return how the order of the products is looked for; operands of several dtypes: which are refused hangs on PyTorch's order."""
    if len(operands) < 3 or not einsum_order.enabled:
        return None
    kind = operands[0].dtype
    return einsum_order.strategy if all(x.dtype is kind for x in operands) or einsum_order.is_available() else None


def contract(
    terms: tuple[Labels, ...], output: Labels | None, operands: tuple[Tensor, ...], lower: Callable[[Tensor], Tensor] | None = None
) -> Tensor:
    """Sum of the products of the operands over the labels that the output lacks; ``lower``: what autocast does to operands of matrix products."""
    plan = _planned(terms, output, tuple([x._layout.shape for x in operands]), _strategy(operands))
    work = [_diagonalised(x, t) for x, t in zip(operands, plan.terms, strict=True)]
    for (i, j), keep in zip(plan.order, plan.keeps, strict=True):
        z, b = work.pop(max(i, j))
        x, a = work.pop(min(i, j))
        step = _step(a, x._layout, b, z._layout, keep, plan.output)
        if lower is not None and step.multiply is not None:
            x, z = lower(x), lower(z)
        if x.dtype is not z.dtype and step.multiply is not None:  # (what is multiplied element by element is promoted)
            _same_dtype(x, z, "einsum")
        work.append((step(x, z), step.result))
    x, labels = _without(*work[0], plan.wanted)
    y = _arranged(x, labels, plan.output)
    return alias_view(y) if y is operands[0] else y


@public(method=False)
def einsum(*args):
    """Sums of products named by subscripts: ``einsum("bij,bjk->bik", a, b)`` is y[b, i, k] = Σⱼ a[b, i, j]·b[b, j, k].

    Letters that the output lacks are summed, one that an operand repeats takes its diagonal, ``...`` stands for further dims,
    which broadcast. Without ``->`` the output has the ellipsis, then the letters that occur once, in order. Subscripts may be
    given as lists instead: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. Several operands are contracted in the order that needs the
    fewest multiplications (by opt_einsum where it is installed; see backends.opt_einsum).

    Example:
        >>> torch.einsum("ij,j->i", torch.eye(2), torch.tensor([1., 2.]))
        tensor([1., 2.])

    Errors: RuntimeError for subscripts that do not fit the shapes; ValueError without operands.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.einsum.html
    """
    terms, output, operands = read(args)
    return contract(terms, output, operands)


def read(args: tuple[Any, ...]) -> tuple[tuple[Labels, ...], Labels | None, tuple[Tensor, ...]]:
    """Return the labels of the operands, those of the output if they are given, and the operands of a call of `einsum`."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        given, operands = args, args[: len(args) // 2 * 2 : 2]
        lists = given[1::2]
        terms = tuple(_sublist(s, f"operand {k}") for k, s in enumerate(lists) if isinstance(s, (list, tuple)))
        if len(terms) != len(operands):
            raise TypeError("einsum(): after each operand a list of its subscripts was expected")
        output = _sublist(given[-1], "output") if len(given) % 2 else None
    else:
        if not isinstance(args[0], str):
            raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(args[0]).__name__}")
        operands = args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
        terms, output = _parsed(args[0])
    if not operands:
        raise ValueError("einsum(): must specify the equation string and at least one operand, got no operand")
    for k, x in enumerate(operands):
        tensor_argument(x, "einsum", f"operands[{k}]")
    if len(terms) != len(operands):
        which = "fewer" if len(operands) < len(terms) else "more"
        raise RuntimeError(
            f"einsum(): {which} operands were provided than specified in the equation ({len(operands)} for {len(terms)} terms)"
        )
    return terms, output, tuple(operands)
