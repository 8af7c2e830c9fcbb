"""``torch.quasirandom``: Sobol's sequences.

Source: https://docs.pytorch.org/docs/stable/generated/torch.quasirandom.SobolEngine.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import launch
from ..dtypes import dtype, get_default_dtype
from ..ops.core.registry import OPS
from ..tensor import Tensor


class SobolEngine:
    """Draws points of the unit cube that fill it evenly; with ``scramble`` shifted and mixed by random digits.

    The points are SciPy's (`scipy.stats.qmc.Sobol`, with Joe and Kuo's direction numbers), which are PyTorch's where nothing is scrambled.

    >>> torch.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    dimension: int
    scramble: bool
    seed: int | None
    num_generated: int

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}] (dimension={dimension})")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._engine = self._made()

    def _made(self) -> Any:
        from scipy.stats import qmc

        seed = self.seed
        if self.scramble and seed is None:
            seed = OPS["randint"].call(1 << 31, (1,)).item()
        return qmc.Sobol(self.dimension, scramble=self.scramble, bits=self.MAXBIT, rng=np.random.default_rng(seed))

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtype | None = None) -> Tensor:
        """Return the next ``n`` points, n × dimension."""
        launch.escapes("a draw of a Sobol sequence")
        points = np.vstack([np.empty((0, self.dimension)), *(self._engine.random(1) for _ in range(n))])
        self.num_generated += n
        found = OPS["tensor"].call(points, dtype=dtype or get_default_dtype())
        if out is None:
            return found
        return out.resize_(found.shape).copy_(found)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtype | None = None) -> Tensor:
        """Return the next 2ᵐ points. ValueError where the number of points would no longer be a power of 2."""
        n = 1 << m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been previously "
                f"generated, then: n={self.num_generated}+2**{m}={total}."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin anew; the engine."""
        self.num_generated = 0
        self._engine.reset()
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Pass over the next ``n`` points; the engine."""
        self._engine.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        given = [f"dimension={self.dimension}", *(["scramble=True"] if self.scramble else []), *([f"seed={self.seed}"] if self.seed is not None else [])]
        return f"SobolEngine({', '.join(given)})"
