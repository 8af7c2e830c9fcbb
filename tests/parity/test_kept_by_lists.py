"""What nodes keep that are not made by one op on tensors alone: functions of lists, and indices counted from the end.

A tensor is changed in place after use, and a pass is refused exactly where PyTorch refuses it.
"""

from __future__ import annotations

from typing import Any

import pytest

import autograd_nb as ours

torch = pytest.importorskip("torch")

ONE = """
abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg norm reciprocal round rsqrt sigmoid sign sin sinh
sqrt tan tanh trunc
"""
COUNTS = {
    **dict.fromkeys(ONE.split(), 1), **dict.fromkeys(["add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow"], 2),
    **dict.fromkeys(("addcmul", "addcdiv", "lerp"), 3),
}  # fmt: skip


def refused(library: Any, name: str, arguments: list[Any], which: int, item: int) -> bool:
    """Whether a pass through the first result is, after a tensor of the ``which``-th list was changed (behind the last: of the results)."""
    given = [[library.tensor([0.3, 0.6], requires_grad=True) * 1, library.tensor([0.2, 0.7])] if a is list else a for a in arguments]
    results = getattr(library, f"_foreach_{name}")(*given)
    with library.no_grad():
        (*given, results)[which][item].add_(0.1)
    try:
        results[0].sum().backward()
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("name", COUNTS)
def test_lists_are_kept_whole(name):
    calls = [[list] * COUNTS[name]] + ([[list, 2.0], [list, [2.0, 3.0]]] if COUNTS[name] == 2 else [])
    for arguments in calls:
        changed = [*range(arguments.count(list)), len(arguments)]
        for which, item in ((which, item) for which in changed for item in (0, 1)):
            wanted = refused(torch, name, arguments, which, item)
            assert refused(ours, name, arguments, which, item) == wanted, (arguments, which, item)


def test_lists_of_inference_tensors_are_refused():
    for name, count in COUNTS.items():
        found = []
        for library in (torch, ours):
            with library.inference_mode():
                fixed = library.tensor([0.2, 0.7])
            lists = [[library.tensor([0.3, 0.6], requires_grad=True) * 1, fixed] for _ in range(count)]
            try:
                found.append(len(getattr(library, f"_foreach_{name}")(*lists)))
            except RuntimeError:
                found.append(None)
        assert found[0] == found[1], name


READS = {
    "one": lambda x, i: x[i], "second": lambda x, i: x[:, i], "pairs": lambda x, i: x[i, i], "beside a number": lambda x, i: x[0, i],
    "beside None": lambda x, i: x[i, None], "take": lambda x, i: x.take(i), "last": lambda x, i: x[..., i],
    "written": lambda x, i: x.index_put((i,), x[0]), "added": lambda x, i: x.index_put((i,), x[0], accumulate=True),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("numbers", [[1, 0], [-1, 0], [[-2], [1]]])
def test_an_index_that_changes_is_refused(name, numbers):
    found = []
    for library in (torch, ours):
        x = library.arange(9.0).reshape(3, 3).requires_grad_()
        for _ in range(3):  # short ways too
            i = library.tensor(numbers)
            y = READS[name](x * 1, i)
            i.add_(0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        found.append(y.shape)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", COUNTS)
def test_results_of_lists_are_recorded_alike(name):
    """If one tensor requires grad, all results say so, in whichever place it stands; nothing comes to it of the others."""
    for place in range(2 * COUNTS[name]):
        found = []
        for library in (torch, ours):
            lists = [[library.tensor([0.3, 0.6]), library.tensor([0.2, 0.7])] for _ in range(COUNTS[name])]
            leaf = lists[place // 2][place % 2].requires_grad_()
            results = getattr(library, f"_foreach_{name}")(*lists)
            seen = [(y.requires_grad, y.is_leaf) for y in results]
            for y in results:
                y.sum().backward(retain_graph=True)
                seen.append(None if leaf.grad is None else leaf.grad.tolist())
            found.append(seen)
        assert str(found[0][:2]) == str(found[1][:2])
        assert [g is None for g in found[0]] == [g is None for g in found[1]], (place, found)
        assert all(a is None or a == pytest.approx(b, rel=1e-5) for a, b in zip(found[0][2:], found[1][2:])), (place, found)
