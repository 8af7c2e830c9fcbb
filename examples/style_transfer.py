"""Neural style transfer: the content of one photograph in the colours and textures of another.

As in PyTorch's tutorial, `ContentLoss` and `StyleLoss` are modules that stand between the layers of a network, pass their input
on and remember how far it is from the target; the picture itself is what is optimised. There is no pretrained network here:
the features are the responses of a fixed bank of filters (edges and blobs of several directions and sizes, then random mixtures
of them), which is enough for textures and colours. The photographs are scikit-learn's china.jpg and flower.jpg.

Both losses share the network's graph and are run backward one after the other, the first with `retain_graph=True`.

    python examples/style_transfer.py --out out
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

try:
    import matplotlib
    import numpy as np
    from PIL import Image
    from sklearn.datasets import load_sample_image
    from tqdm import tqdm
except ModuleNotFoundError as missing:
    sys.exit(f"This example needs the package {missing.name!r}: pip install 'autograd_nb[examples]'")

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn, optim

matplotlib.use("Agg")  # pictures go to files; no display is needed
from matplotlib import pyplot as plt


class ContentLoss(nn.Module):
    """Passes its input on, and keeps in ``loss`` its mean squared distance from the target."""

    def __init__(self, target) -> None:
        super().__init__()
        self.target = target.detach()  # a constant, not a part of the graph
        self.loss = torch.tensor(0.0)

    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x


def gram(x):
    """How much the channels go together, wherever in the picture: (1, C, H, W) -> (C, C)."""
    _, c, h, w = x.shape
    features = x.view(c, h * w)
    return features @ features.t() / (h * w)


class StyleLoss(nn.Module):
    """Passes its input on, and keeps in ``loss`` how far its Gram matrix is from the target's, as a share of the latter."""

    def __init__(self, target) -> None:
        super().__init__()
        self.target = gram(target).detach()
        self.scale = 1.0 / self.target.square().mean().item()
        self.loss = torch.tensor(0.0)

    def forward(self, x):
        self.loss = F.mse_loss(gram(x), self.target) * self.scale
        return x


# ------------------------------------------------------------------------------------------------------- the network


def filter_bank(size: int = 5, directions: int = 4) -> np.ndarray:
    """(K, size, size): a blur, a blob, and waves of several directions, each as an even and an odd one."""
    half = size // 2
    y, x = np.mgrid[-half : half + 1, -half : half + 1].astype(float)
    window = np.exp(-(x**2 + y**2) / (2 * (size / 4) ** 2))
    found = [window, window - window.mean()]
    for k in range(directions):
        along = x * math.cos(math.pi * k / directions) + y * math.sin(math.pi * k / directions)
        for wave in (np.cos(1.6 * along), np.sin(1.6 * along)):
            wave = wave * window
            found.append(wave - wave.mean())
    return np.stack([f / np.sqrt((f**2).sum()) for f in found])


def network(seed: int = 0) -> nn.Sequential:
    """Two layers of convolutions with fixed weights: the filter bank on each colour, then random mixtures, at half the size."""
    generator = torch.Generator().manual_seed(seed)
    bank = torch.from_numpy(filter_bank()).float()
    k, size, _ = bank.shape
    first = nn.Conv2d(3, 3 * k, size, padding=size // 2, padding_mode="reflect", bias=False)
    second = nn.Conv2d(3 * k, 48, 3, padding=1, padding_mode="reflect", bias=False)
    third = nn.Conv2d(48, 64, 3, padding=1, padding_mode="reflect", bias=False)
    with torch.no_grad():
        first.weight.zero_()
        for colour in range(3):
            first.weight[colour * k : (colour + 1) * k, colour] = bank
        for layer in (second, third):
            fan = layer.in_channels * 9
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * math.sqrt(2 / fan))
    layers = nn.Sequential(first, nn.ReLU(), nn.AvgPool2d(2), second, nn.ReLU(), nn.AvgPool2d(2), third, nn.ReLU())
    return layers.eval().requires_grad_(False)


def with_losses(layers: nn.Sequential, content, style, content_after: int = 2):
    """The layers with a style loss after each activation and a content loss after one of them; and these losses."""
    model = nn.Sequential()
    contents, styles = [], []
    activations = 0
    model.add_module("colours", StyleLoss(style))
    styles.append(model[-1])
    for i, layer in enumerate(layers):
        model.add_module(f"layer{i}", layer)
        if not isinstance(layer, nn.ReLU):
            continue
        activations += 1
        with torch.no_grad():
            styles.append(StyleLoss(model(style)))
        model.add_module(f"style{activations}", styles[-1])
        if activations == content_after:
            with torch.no_grad():
                contents.append(ContentLoss(model(content)))
            model.add_module(f"content{activations}", contents[-1])
    return model, contents, styles


# ------------------------------------------------------------------------------------------------------------ pictures


def picture(name: str, height: int):
    """One of scikit-learn's photographs, as (1, 3, height, width) in 0 … 1."""
    image = Image.fromarray(load_sample_image(name))
    image = image.resize((round(image.width * height / image.height), height), Image.Resampling.LANCZOS)
    return torch.from_numpy(np.asarray(image, dtype=np.float32) / 255).permute(2, 0, 1)[None].contiguous()


def as_array(image):
    return image.detach()[0].clamp(0, 1).permute(1, 2, 0).numpy()


def transfer(content, style, args):
    """(the picture, the style and content loss of each step)."""
    model, contents, styles = with_losses(network(args.seed), content, style)
    image = content.clone().requires_grad_()
    optimizer = optim.Adam([image], lr=args.lr)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    history: list[tuple[float, float]] = []
    with tqdm(range(args.steps), unit="step", disable=None, dynamic_ncols=True) as bar:
        for _ in bar:
            optimizer.zero_grad()
            model(image)
            style_loss = args.style_weight * sum(s.loss for s in styles)
            content_loss = args.content_weight * sum(c.loss for c in contents)
            style_loss.backward(retain_graph=True)  # the layers' part of the graph is needed once more
            content_loss.backward()
            optimizer.step()
            scheduler.step()
            with torch.no_grad():
                image.clamp_(0, 1)
            history.append((style_loss.item(), content_loss.item()))
            bar.set_postfix_str(f"style {history[-1][0]:.3f}, content {history[-1][1]:.3f}")
    return image.detach(), history


def draw(path: Path, content, style, image, history) -> None:
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for one, (title, shown) in zip(axes.flat, (("content", content), ("style", style), ("result", image)), strict=False):
        one.imshow(as_array(shown))
        one.set_title(title)
        one.set_axis_off()
    axes[1, 1].semilogy([s for s, _ in history], label="style")
    axes[1, 1].semilogy([max(c, 1e-6) for _, c in history], label="content")
    axes[1, 1].set(title="losses", xlabel="step")
    axes[1, 1].legend()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--content", choices=("china.jpg", "flower.jpg"), default="china.jpg", help="the other one gives the style (china.jpg)")
    add("--height", type=int, default=160, metavar="PIXELS", help="of the pictures (160)")
    add("--steps", type=int, default=120, metavar="N", help="(120)")
    add("--lr", type=float, default=0.03, metavar="RATE", help="learning rate of Adam at first (0.03)")
    add("--style-weight", type=float, default=1.0, metavar="W", help="(1)")
    add("--content-weight", type=float, default=1.0, metavar="W", help="(1)")
    add("--seed", type=int, default=0, metavar="N", help="of the random mixtures (0)")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="where the pictures are written (out)")
    args = parser.parse_args(argv)
    if args.height < 32:
        parser.error(f"--height must be at least 32, got {args.height}")
    args.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()

    content = picture(args.content, args.height)
    style = picture("flower.jpg" if args.content == "china.jpg" else "china.jpg", args.height)
    image, history = transfer(content, style, args)
    (style_first, _), (style_last, content_last) = history[0], history[-1]
    print(f"style loss {style_first:.3f} -> {style_last:.3f}, content loss 0 -> {content_last:.3f}")
    print(f"the picture moved by {(image - content).abs().mean().item():.3f} of the full range on average")
    Image.fromarray((as_array(image) * 255).round().astype(np.uint8)).save(args.out / "style_transfer.png")
    draw(args.out / "style_transfer_all.png", content, style, image, history)
    print(f"{args.out}/: style_transfer.png, style_transfer_all.png; {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
