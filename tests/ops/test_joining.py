"""cat and stack, called twice: the second call finds what the first one worked out."""

import numpy as np
import pytest

import autograd_nb as torch


@pytest.mark.parametrize("count", [1, 2, 3, 9, 18])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("name", ["cat", "stack"])
def test_joined_and_taken_apart_again(name, dim, count):
    sizes = [1 + k % 3 if name == "cat" else 2 for k in range(count)]
    arrays = [np.random.default_rng(k).standard_normal((n, 4) if dim == 0 else (4, n)).astype(np.float32) for k, n in enumerate(sizes)]
    expected = (np.concatenate if name == "cat" else np.stack)(arrays, dim)
    for parts in ([torch.from_numpy(a) for a in arrays], [torch.from_numpy(np.pad(a, ((1, 0), (0, 0))))[1:] for a in arrays]):
        for _ in range(2):
            leaves = [t.clone().requires_grad_() for t in parts]
            for t in (parts, leaves, tuple(leaves[:1] + parts[1:])):
                y = getattr(torch, name)(t, dim)
                np.testing.assert_array_equal(y.detach().numpy(), expected)
                assert y.is_contiguous() and y._version == 0
            assert y.grad_fn.name() == {"cat": "CatBackward0", "stack": "StackBackward0"}[name]
            weights = torch.from_numpy(expected)
            y = getattr(torch, name)([t * t for t in leaves], dim)
            grads = torch.autograd.grad((y * weights).sum(), leaves, create_graph=True)
            second = torch.autograd.grad(sum((g * g).sum() for g in grads), leaves)
            for t, g, h in zip(leaves, grads, second, strict=True):
                torch.testing.assert_close(g, 2 * t * t)
                torch.testing.assert_close(h, 8 * t**3)


def test_kinds_and_modes():
    a, b = torch.tensor([1, 2]), torch.tensor([0.5])
    for _ in range(2):
        assert torch.cat([a, b]).tolist() == [1.0, 2.0, 0.5]
        assert torch.cat([a > 1, a > 0]).tolist() == [False, True, True, True]
        assert torch.stack([a, a], 1).tolist() == [[1, 1], [2, 2]]
        assert torch.cat([a.to(torch.complex64), a.to(torch.complex64)]).tolist() == [1, 2, 1, 2]
        assert torch.cat([a[::2], a.flip(0)]).tolist() == [1, 2, 1]
        with torch.inference_mode():
            assert torch.cat([b, b]).is_inference()
        with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
            torch.cat([torch.ones(2, 2), torch.ones(2, 3)])
        mapped = torch.func.vmap(lambda x: torch.stack([x, b]))(torch.ones(3, 1))
        assert mapped.shape == (3, 2, 1)
