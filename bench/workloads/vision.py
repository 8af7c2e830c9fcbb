"""Images and volumes."""

from __future__ import annotations

from typing import Any

from .common import Step, integers, normal, training


def unet(lib: Any) -> Step:
    """A U-net of one level: pooled, convolved, transposed back, joined by cat."""
    nn, F = lib.nn, lib.nn.functional
    d1, d2, up, out = (
        nn.Conv2d(1, 8, 3, padding=1),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ConvTranspose2d(16, 8, 2, 2),
        nn.Conv2d(16, 1, 1),
    )
    parameters = [p for m in (d1, d2, up, out) for p in m.parameters()]
    x, y = normal(lib, 4, 1, 32, 32), (normal(lib, 4, 1, 32, 32, seed=1) > 0).float()

    def loss():
        a = F.relu(d1(x))
        b = F.relu(d2(F.max_pool2d(a, 2)))
        c = lib.cat([a, up(b)], 1)
        return F.binary_cross_entropy_with_logits(out(c), y)

    return training(loss, lib.optim.SGD(parameters, 0.1, momentum=0.9))


def mobilenet_block(lib: Any) -> Step:
    """An inverted residual block: 1×1, depthwise 3×3, 1×1, each with batch norm."""
    nn = lib.nn
    m = nn.Sequential(
        nn.Conv2d(16, 64, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU6(),
        nn.Conv2d(64, 64, 3, 1, 1, groups=64, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU6(),
        nn.Conv2d(64, 16, 1, bias=False),
        nn.BatchNorm2d(16),
    )
    x = normal(lib, 8, 16, 14, 14)
    optimizer = lib.optim.SGD(m.parameters(), 0.01)
    return training(lambda: (m(x) + x).pow(2).mean(), optimizer)


def vit_block(lib: Any) -> Step:
    """A vision transformer of two blocks on 16 patches."""
    nn, F = lib.nn, lib.nn.functional

    class B(nn.Module):
        def __init__(s):
            super().__init__()
            s.n1, s.n2 = nn.LayerNorm(64), nn.LayerNorm(64)
            s.a = nn.MultiheadAttention(64, 4, batch_first=True)
            s.m = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))

        def forward(s, x):
            h = s.n1(x)
            x = x + s.a(h, h, h, need_weights=False)[0]
            return x + s.m(s.n2(x))

    b = nn.Sequential(B(), B())
    patch = nn.Conv2d(3, 64, 8, 8)
    head = nn.Linear(64, 10)
    pos = nn.Parameter(lib.zeros(1, 16, 64))
    img, y = normal(lib, 8, 3, 32, 32), integers(lib, 10, 8)
    optimizer = lib.optim.AdamW([*b.parameters(), *patch.parameters(), *head.parameters(), pos])
    return training(lambda: F.cross_entropy(head(b(patch(img).flatten(2).transpose(1, 2) + pos).mean(1)), y), optimizer)


def conv_autoencoder(lib: Any) -> Step:
    """Convolutions down and transposed convolutions up."""
    nn, F = lib.nn, lib.nn.functional
    e = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
    d = nn.Sequential(nn.ConvTranspose2d(16, 8, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 3, 2, 1, 1), nn.Sigmoid())
    x = normal(lib, 16, 1, 28, 28).sigmoid()
    optimizer = lib.optim.Adam([*e.parameters(), *d.parameters()])
    return training(lambda: F.mse_loss(d(e(x)), x), optimizer)


def spatial_transformer(lib: Any) -> Step:
    """An affine grid found by a net, and what is sampled there."""
    nn, F = lib.nn, lib.nn.functional
    loc = nn.Sequential(nn.Flatten(), nn.Linear(784, 16), nn.ReLU(), nn.Linear(16, 6))
    fc = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    x, y = normal(lib, 8, 1, 28, 28), integers(lib, 10, 8)
    optimizer = lib.optim.SGD([*loc.parameters(), *fc.parameters()], 0.01)

    def loss():
        th = loc(x).view(-1, 2, 3)
        g = F.affine_grid(th, x.shape, align_corners=False)
        return F.cross_entropy(fc(F.grid_sample(x, g, align_corners=False)), y)

    return training(loss, optimizer)


def superres(lib: Any) -> Step:
    """Super-resolution by a pixel shuffle."""
    nn, F = lib.nn, lib.nn.functional
    m = nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv2d(16, 9, 3, padding=1), nn.PixelShuffle(3))
    x, y = normal(lib, 4, 1, 24, 24), normal(lib, 4, 1, 72, 72, seed=1)
    optimizer = lib.optim.Adam(m.parameters(), 1e-3)
    return training(lambda: F.mse_loss(m(x), y), optimizer)


def style_transfer(lib: Any) -> Step:
    """An image towards a content and a Gram matrix."""
    nn, F = lib.nn, lib.nn.functional
    f = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1))
    x = nn.Parameter(normal(lib, 1, 3, 32, 32))
    for p in f.parameters():
        p.requires_grad_(False)

    def gram(a):
        b, c, h, w = a.shape
        q = a.view(b * c, h * w)
        return q @ q.t() / (b * c * h * w)

    with lib.no_grad():
        c0 = f(normal(lib, 1, 3, 32, 32, seed=1))
        g0 = gram(f(normal(lib, 1, 3, 32, 32, seed=2)))
    optimizer = lib.optim.Adam([x], 1e-2)

    def loss():
        a = f(x)
        return F.mse_loss(a, c0) + 1e4 * F.mse_loss(gram(a), g0)

    return training(loss, optimizer)


def group_norm_net(lib: Any) -> Step:
    """Strided convolutions with group norms, dropout and label smoothing."""
    nn, F = lib.nn, lib.nn.functional
    m = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1),
        nn.GroupNorm(4, 16),
        nn.SiLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.GroupNorm(8, 32),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(32, 10),
    )
    x, y = normal(lib, 16, 3, 32, 32), integers(lib, 10, 16)
    optimizer = lib.optim.SGD(m.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    return training(lambda: F.cross_entropy(m(x), y, label_smoothing=0.1), optimizer)


def dice_focal(lib: Any) -> Step:
    """A segmentation under a Dice and a focal loss."""
    nn, F = lib.nn, lib.nn.functional
    c = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.InstanceNorm2d(8, affine=True), nn.PReLU(), nn.Conv2d(8, 2, 1))
    x = normal(lib, 4, 3, 24, 24)
    y = integers(lib, 2, 4, 24, 24, seed=1)
    optimizer = lib.optim.Adam(c.parameters())

    def loss():
        l = c(x)
        p = l.softmax(1)
        oh = F.one_hot(y, 2).permute(0, 3, 1, 2).float()
        dice = 1 - (2 * (p * oh).sum((2, 3)) + 1) / ((p + oh).sum((2, 3)) + 1)
        ce = F.cross_entropy(l, y, reduction="none")
        return dice.mean() + ((1 - lib.exp(-ce)) ** 2 * ce).mean()

    return training(loss, optimizer)


def conv3d_net(lib: Any) -> Step:
    """Convolutions and pools of volumes."""
    nn, F = lib.nn, lib.nn.functional
    m = nn.Sequential(
        nn.Conv3d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(4, 8, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(8, 2),
    )
    x, y = normal(lib, 2, 1, 8, 16, 16), integers(lib, 2, 2)
    optimizer = lib.optim.Adam(m.parameters())
    return training(lambda: F.cross_entropy(m(x), y), optimizer)


def upsample_net(lib: Any) -> Step:
    """Bilinear and nearest upsampling between convolutions."""
    nn = lib.nn
    m = nn.Sequential(
        nn.Conv2d(8, 8, 3, padding=1),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.Conv2d(8, 4, 3, padding=1),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(4, 1, 3, padding=1),
        nn.Tanh(),
    )
    x = normal(lib, 4, 8, 8, 8)
    optimizer = lib.optim.RMSprop(m.parameters())
    return training(lambda: m(x).abs().mean(), optimizer)


def nerf(lib: Any) -> Step:
    """Volume rendering of a small radiance field."""
    nn, F = lib.nn, lib.nn.functional
    n = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    p = normal(lib, 32, 16, 3)
    c = normal(lib, 32, 3, seed=1).sigmoid()
    fr = 2.0 ** lib.arange(4).float()
    optimizer = lib.optim.Adam(n.parameters(), 5e-4)

    def loss():
        q = p[..., None] * fr
        f = lib.cat([q.sin(), q.cos()], -1).flatten(2)
        h = n(f)
        al = 1 - lib.exp(-F.relu(h[..., 3]) * 0.1)
        t = lib.cumprod(lib.cat([lib.ones(32, 1), 1 - al[:, :-1] + 1e-10], 1), 1)
        w = al * t
        return F.mse_loss((w[..., None] * lib.sigmoid(h[..., :3])).sum(1), c)

    return training(loss, optimizer)
