"""A small character transformer, trained on Python's own help texts, writes some more of them.

The whole training step (forward, backward, optimizer) is one function under `torch.compile`: it is captured once and from then
on runs as one native program. The first steps are run without, to say by how much that is faster.

    python examples/char_gpt.py --out out
"""

from __future__ import annotations

import argparse
import csv
import pydoc_data.topics
import sys
import time
from pathlib import Path

try:
    import matplotlib
    from tqdm import tqdm
except ModuleNotFoundError as missing:
    sys.exit(f"This example needs the package {missing.name!r}: pip install 'autograd_nb[examples]'")

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn, optim

matplotlib.use("Agg")  # pictures go to files; no display is needed
from matplotlib import pyplot as plt


class Block(nn.Module):
    """Attention to what came before, then a small network, each added to the stream."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(c, dim=2))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Characters (B, T) -> logits of the next one (B, T, characters)."""

    def __init__(self, characters: int, context: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(characters, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self.start)

    @staticmethod
    def start(module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.05)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, index):
        x = self.tokens(index) + self.places(torch.arange(index.shape[1]))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, index, count: int, temperature: float = 0.8):
        """``index`` (1, T) with ``count`` characters more, drawn one after the other."""
        for _ in range(count):
            logits = self(index[:, -self.context :])[:, -1] / temperature
            index = torch.cat([index, torch.multinomial(F.softmax(logits, dim=-1), 1)], dim=1)
        return index


class Text:
    """Python's help texts as numbers, one a character; the last tenth is held out."""

    def __init__(self) -> None:
        text = "\n\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
        text = "".join(c for c in text if c == "\n" or 32 <= ord(c) < 127)
        self.characters = sorted(set(text))
        number = {c: i for i, c in enumerate(self.characters)}
        data = torch.tensor([number[c] for c in text])
        cut = len(data) * 9 // 10
        self.parts = {"train": data[:cut], "test": data[cut:]}
        self.number = number

    def batch(self, part: str, size: int, context: int):
        """(characters, the ones after them), each (size, context)."""
        data = self.parts[part]
        begin = torch.randint(0, len(data) - context, (size, 1))
        index = begin + torch.arange(context + 1)
        pieces = data[index]
        return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()

    def decode(self, index) -> str:
        return "".join(self.characters[i] for i in index.tolist())


def cross_entropy(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def held_out(model, text: Text, args, batches: int = 8) -> float:
    with torch.no_grad():
        return sum(cross_entropy(model, *text.batch("test", args.batch_size, args.context)).item() for _ in range(batches)) / batches


def train(model, text: Text, args, table):
    """(loss of each step, {held out after step: loss}, milliseconds of an eager and of a compiled step)."""
    optimizer = optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.99), weight_decay=0.01)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.steps, pct_start=0.1)

    def step(x, y):
        loss = cross_entropy(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = torch.compile(step)
    eager_steps = min(12, args.steps // 3)
    times: dict[bool, list[float]] = {False: [], True: []}
    history, tests = [], {}
    with tqdm(range(args.steps), unit="step", disable=None, dynamic_ncols=True) as bar:
        for i in bar:
            x, y = text.batch("train", args.batch_size, args.context)
            fast = i >= eager_steps
            began = time.perf_counter()
            loss = (compiled if fast else step)(x, y)
            times[fast].append(time.perf_counter() - began)
            scheduler.step()
            history.append(loss.item())
            table.writerow((i + 1, f"{history[-1]:.6f}", f"{scheduler.get_last_lr()[0]:.3g}", f"{times[fast][-1]:.6f}"))
            if (i + 1) % 50 == 0 or i + 1 == args.steps:
                tests[i + 1] = held_out(model, text, args)
            if i % 10 == 0:
                bar.set_postfix_str(f"loss {history[-1]:.3f}" + (f", held out {list(tests.values())[-1]:.3f}" if tests else ""))
    # medians: the first steps of each kind compile their kernels
    eager, fast_ = (1e3 * sorted(t)[len(t) // 2] for t in (times[False], times[True]))
    return history, tests, eager, fast_


def draw(path: Path, history: list[float], tests: dict[int, float]) -> None:
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(range(1, len(history) + 1), history, linewidth=0.8, label="training")
    axes.plot(list(tests), list(tests.values()), ".-", label="held out")
    axes.set(title="cross entropy of the next character", xlabel="step", ylabel="nats")
    axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--steps", type=int, default=1000, metavar="N", help="(1000)")
    add("--batch-size", type=int, default=16, metavar="N", help="(16)")
    add("--context", type=int, default=64, metavar="N", help="characters that are seen (64)")
    add("--width", type=int, default=64, metavar="N", help="(64)")
    add("--heads", type=int, default=4, metavar="N", help="(4)")
    add("--layers", type=int, default=2, metavar="N", help="(2)")
    add("--lr", type=float, default=6e-3, metavar="RATE", help="largest learning rate of AdamW (0.006)")
    add("--sample", type=int, default=300, metavar="N", help="characters to write at the end (300)")
    add("--prompt", default="The ", metavar="TEXT", help="what they begin with ('The ')")
    add("--seed", type=int, default=0, metavar="N", help="(0)")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="where the picture is written (out)")
    args = parser.parse_args(argv)
    if args.width % args.heads:
        parser.error(f"--width must be a multiple of --heads, got {args.width} and {args.heads}")
    if args.steps < 6:
        parser.error(f"--steps must be at least 6, got {args.steps}")
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    began = time.perf_counter()

    text = Text()
    unknown = set(args.prompt) - set(text.characters)
    if unknown or not args.prompt:
        parser.error(f"--prompt must be of characters that the text has, and not empty; unknown: {sorted(unknown)}")
    model = GPT(len(text.characters), args.context, args.width, args.heads, args.layers)
    count = sum(p.numel() for p in model.parameters())
    print(f"{sum(map(len, text.parts.values())):,} characters, {len(text.characters)} different ones; {count:,} parameters")
    with (args.out / "char_gpt.csv").open("w", newline="") as file:  # a line a step: to be looked at while it trains
        table = csv.writer(file)
        table.writerow(("step", "loss", "lr", "seconds"))
        history, tests, eager, compiled = train(model, text, args, table)
    print(f"loss {history[0]:.3f} -> {history[-1]:.3f}, held out {list(tests.values())[-1]:.3f}")
    print(f"a step takes {eager:.1f} ms, compiled {compiled:.1f} ms: {eager / compiled:.2f} times as fast")
    start = torch.tensor([[text.number[c] for c in args.prompt]])
    print("\n" + text.decode(model.write(start, args.sample)[0]) + "\n")
    draw(args.out / "char_gpt.png", history, tests)
    print(f"{args.out / 'char_gpt.png'}, {args.out / 'char_gpt.csv'}; {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
