"""Random indices for a shape, as text: numbers, slices, new dims, ellipses, masks, and tensors, lists and arrays of positions."""

from __future__ import annotations

import random


def _slice(rng: random.Random, size: int) -> str:
    def bound() -> str:
        return "" if rng.random() < 0.5 else str(rng.randint(-size - 1, size + 1))

    step = rng.choice(["", "", ":1", ":2", ":3"])
    return f"{bound()}:{bound()}{step}"


def _positions(rng: random.Random, size: int, count: int) -> str:
    places = [rng.randrange(-size, size) if size else 0 for _ in range(count)]
    kind = rng.choice(["tensor", "tensor", "list", "array", "int32", "column"])
    if kind == "list":
        return str(places)
    if kind == "array":
        return f"np.array({places})"
    if kind == "int32":
        return f"torch.tensor({places}, dtype=torch.int32)"
    return f"torch.tensor({[[p] for p in places] if kind == 'column' else places})"


def index(rng: random.Random, shape: tuple[int, ...]) -> str:
    """One that mostly fits."""
    parts: list[str] = []
    dims = list(shape)
    gathered = rng.random() < 0.4  # whether positions take part
    count, k, ellipsis = rng.randint(1, 3), 0, False
    while k < len(dims):
        chance = rng.random()
        if chance < 0.15:
            break
        if chance < 0.22:
            parts.append("None")
            continue
        if chance < 0.3 and not ellipsis:
            parts.append("...")
            ellipsis = True
            k += rng.randint(0, len(dims) - k)
            continue
        size = dims[k]
        if chance < 0.5:
            parts.append(str(rng.randrange(-size, size) if size else 0))
        elif gathered and chance < 0.8:
            parts.append(_positions(rng, size, count))
        elif gathered and chance < 0.85:
            mask = [rng.random() < 0.5 for _ in range(size)]
            parts.append(f"torch.tensor({mask}, dtype=torch.bool)" if rng.random() < 0.7 else str(mask or [False]))
        elif chance < 0.86:
            parts.append(rng.choice(["True", "False", "torch.tensor(0)", "np.int64(0)"]))
            k += parts[-1] not in ("True", "False")
            continue
        else:
            parts.append(_slice(rng, size))
        k += 1
    if rng.random() < 0.02:
        parts.append("0")  # one too many
    if not parts:
        return rng.choice(["...", "None", ":", "()", "0"])
    return ", ".join(parts) if len(parts) > 1 or rng.random() < 0.9 else f"{parts[0]},"
