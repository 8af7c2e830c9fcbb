"""Around matrix products: the sums that follow them are left to the products themselves, and a bias to whatever reads them.

- ``y = x + a·b``: y begins as x (in its memory, where nobody else reads x) and the product adds to it. So are gradients that
  several products contribute to.
- ``y = bias + a·b`` begins as rows of the bias. Where y = x + (bias + a·b), it begins as x + bias; where only pointwise kernels
  read it, they add the bias themselves and nothing is written beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from ...shapes import Layout, layout_of
from ..ir import Buffer, Step, Use
from .pointwise_step import Member, member, pointwise

MOST_READERS = 4  #: each of which adds the bias again
_FLOATS = ("float32", "float64")


def fuse_gemm_epilogues(steps: list[Step], live_out: Collection[int], numbers: Iterator[int]) -> list[Step]:
    """Return the steps with products that do the sums around them."""
    return _Work(steps, live_out).done()


def is_product(step: Step) -> bool:
    """Return whether it is a matrix product that writes a dense array of floats."""
    if not (step.runs("products.matmul", "matmul") or step.runs("products.tiled", "matmul", "matmul_large", "vector")):
        return False
    batch, m, n, stride, row, out = (step.argument(name) for name in ("batch", "m", "n", "sc", "c_row", "c"))
    return (
        out.dtype.name in _FLOATS
        and out.size == batch * m * n
        and (row == n or m == 1)
        and (stride == m * n or batch == 1)
        and len({u.buffer.number for u, _ in step.uses()}) == 3
    )


def _same(value: Any) -> Any:
    return [value]


def _sum(a: Any, b: Any) -> Any:
    return [a + b]


def _with_bias(formula: Callable[..., Any], k: int) -> Callable[..., Any]:
    """Return the formula of one that reads its operand ``k`` plus the last."""

    def added(*xs: Any) -> Any:
        return formula(*xs[:k], xs[k] + xs[-1], *xs[k + 1 : -1])

    return added


class _Work:
    """Steps being rewritten, each in a slot of its own, so that places stay what they are."""

    def __init__(self, steps: list[Step], live_out: Collection[int]):
        self.live_out = live_out
        self.slots: list[list[Step]] = [[s] for s in steps]
        self.places: dict[int, set[int]] = {}  # buffer -> slots that may use it
        for i, step in enumerate(steps):
            self._note(i, step)

    def _note(self, place: int, step: Step) -> None:
        for u, _ in step.uses():
            self.places.setdefault(u.buffer.number, set()).add(place)

    def done(self) -> list[Step]:
        """Return the steps that come out."""
        for i in range(len(self.slots)):
            step = self.slots[i][-1] if self.slots[i] else None
            if step is not None and is_product(step) and not self._sum(i, step):
                self._bias(i, step)
        return [step for slot in self.slots for step in slot]

    def uses(self, buffer: Buffer) -> Iterator[tuple[int, Step, Use, bool]]:
        """Yield (place, step, use, whether it is written) of a buffer, in order."""
        for place in sorted(self.places.get(buffer.number, ())):
            for step in self.slots[place]:
                for u, written in step.uses():
                    if u.buffer is buffer:
                        yield place, step, u, written

    def unchanged(self, buffer: Buffer, after: int, before: int) -> bool:
        """Return whether nobody writes a buffer between two places."""
        return not any(written and after < place < before for place, _, _, written in self.uses(buffer))

    def put(self, place: int, *steps: Step) -> None:
        """Let these steps stand at a place."""
        self.slots[place] = list(steps)
        for step in steps:
            self._note(place, step)

    def rename(self, gone: Buffer, stays: Buffer) -> None:
        """Let one buffer be another."""
        for _, _, u, _ in list(self.uses(gone)):
            u.buffer = stays
        self.places.setdefault(stays.number, set()).update(self.places.get(gone.number, ()))

    def filled(self, i: int, step: Step) -> tuple[bool, tuple[int, Step] | None, list[tuple[int, Step]]]:
        """Return (whether the product is all that the buffer holds, the rows of bias that it began with, who reads it)."""
        target = step.argument("c")
        fill: list[tuple[int, Step]] = []
        readers: list[tuple[int, Step]] = []
        for place, other, use, written in self.uses(target.buffer):
            if other is step:
                continue
            if not written:
                readers.append((place, other))
                continue
            begins = other.runs("products.matmul", "fill_rows") and use.whole and other.argument("bias").dtype == use.dtype
            if begins and place < i and not fill:
                fill.append((place, other))
            else:
                return False, None, []
        known = target.buffer.kind == "temporary" and target.buffer.number not in self.live_out and target.whole
        fine = known and step.argument("add") is bool(fill) and all(place > i for place, _ in readers)
        return fine, fill[0] if fill else None, readers

    # ---- y = x + a·b
    def _sum(self, i: int, step: Step) -> bool:
        fine, fill, readers = self.filled(i, step)
        if not fine or len(readers) != 1:
            return False
        j, add = readers[0]
        m = member(add)
        if m is None or add.name not in ("add", "add_") or len(m.inputs) != 2 or len(self.slots[j]) != 1:
            return False
        if not all(isinstance(o, Use) for o, _ in m.inputs):
            return False
        product, n = step.argument("c"), step.argument("n")
        (x, lx), (_, lt) = m.inputs if m.inputs[1][0].buffer is product.buffer else m.inputs[::-1]
        out, lo, _ = m.outputs[0]
        dtype = product.dtype.name
        if out.buffer is product.buffer or m.compute != [dtype, dtype] or lx.shape != lt.shape:
            return False
        if not all(layout.contiguous and layout.dtype.name == dtype and layout.size == product.size for layout in (lx, lt, lo)):
            return False
        if not all(self.unchanged(u.buffer, i, j) for u, written in step.uses() if not written):
            return False
        begun: list[Step] = []
        read = {u.buffer.number for u, written in step.uses() if not written}
        if x.key() == out.key() or (fill is None and self._dies(x, out, j)):
            if out.buffer.number in read or x.buffer.number in read or fill is not None:
                return False
        else:
            if out.buffer.number in read or self._joins(m, j):
                return False
            flat = layout_of((product.size // max(n, 1), n), None, lx.dtype)
            if fill is None:
                begun = [pointwise("clone", _same, [(x, flat)], [dtype], [(out, flat, dtype)], add.line)]
            else:
                bias = fill[1].argument("bias")
                if not self.unchanged(bias.buffer, fill[0], j):
                    return False
                rows = layout_of(flat.shape, (0, 1), flat.dtype)
                begun = [pointwise("add", _sum, [(x, flat), (bias, rows)], [dtype] * 2, [(out, flat, dtype)], add.line)]
                self.slots[fill[0]].remove(fill[1])
        target = Use(out.buffer, out.offset, out.size, out.dtype)
        self.slots[i].remove(step)
        self.put(j, *begun, step.with_arguments(c=target, add=True))
        if not begun and x.buffer is not out.buffer:
            if out.buffer.number in self.live_out:
                self.rename(x.buffer, out.buffer)
            else:
                self.rename(out.buffer, x.buffer)
        return True

    def _dies(self, x: Use, out: Use, j: int) -> bool:
        """Return whether a sum may be in the memory of its operand: nobody reads that any more."""
        a, b = x.buffer, out.buffer
        if a is b or a.kind != "temporary" or b.kind != "temporary" or a.number in self.live_out:
            return False
        if not (x.whole and out.whole and a.nbytes == b.nbytes and a.array.dtype == b.array.dtype):
            return False
        return all(place <= j for place, _, _, _ in self.uses(a)) and all(place >= j for place, _, _, _ in self.uses(b))

    def _joins(self, m: Member, j: int) -> bool:
        """Return whether the sum would be one kernel with what comes next, so that a copy beforehand saves nothing."""
        out = m.outputs[0][0].buffer
        following = next((s for slot in self.slots[j + 1 :] for s in slot), None)
        return following is not None and member(following) is not None and any(u.buffer is out for u, _ in following.uses())

    # ---- y = bias + a·b
    def _bias(self, i: int, step: Step) -> None:
        fine, fill, readers = self.filled(i, step)
        if not fine or fill is None or not 0 < len(readers) <= MOST_READERS:
            return
        bias, target, n = fill[1].argument("bias"), step.argument("c"), step.argument("n")
        changed: list[tuple[int, Step, Step]] = []
        for place, reader in readers:
            m = member(reader)
            if m is None or reader.call.over is not None or not self.unchanged(bias.buffer, fill[0], place):
                return
            mine = [k for k, (o, _) in enumerate(m.inputs) if isinstance(o, Use) and o.buffer is target.buffer]
            if len(mine) != 1 or m.compute[mine[0]] not in _FLOATS:
                return
            k = mine[0]
            use, layout = m.inputs[k]
            found = columns(use, layout, bias, n)
            if found is None:
                return
            formula = _with_bias(m.step.call.recipe.formula, k)
            inputs, compute = [*m.inputs, found], [*m.compute, m.compute[k]]
            changed.append((place, reader, pointwise(reader.name, formula, inputs, compute, m.outputs, reader.line)))
        self.slots[fill[0]].remove(fill[1])
        self.slots[i][-1] = step.with_arguments(add=False)
        for place, reader, new in changed:
            self.put(place, *[new if s is reader else s for s in self.slots[place]])


def columns(use: Use, layout: Layout, bias: Use, n: int) -> tuple[Use, Layout] | None:
    """Return how a bias is walked beside a view of the rows of ``n`` elements that it belongs to, or None where that has no
    strides.
    """
    first = use.offset // use.dtype.itemsize % n
    strides, last = [], first
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        if size == 1 or stride % n == 0:
            strides.append(0)
        else:
            strides.append(stride)
            last += (size - 1) * stride
    if last >= n:
        return None
    item = bias.dtype.itemsize
    part = Use(bias.buffer, bias.offset + first * item, last - first + 1, bias.dtype)
    return part, layout_of(layout.shape, tuple(strides), layout.dtype)
