"""Look for cliffs among calls as programs write them: ``python -m bench.cliffs.spelled [words …]`` times small ones beside PyTorch.

The other benches call ops by place, with tensors made before. Here are keywords, lists, indices of all sorts, methods of tensors, what
makes tensors, modules and their options. Each runs with a tensor that requires no gradient and one that does, as `bench.cliffs.beside` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

import autograd_nb as ours
from bench.cliffs.beside import Case, Step, main

#: operands, each from those above it; x is given
OPERANDS = """
d = x.detach().clone()
y = x[None, None]
z = x[None]
i = T.tensor([0, 2])
I = T.zeros(4, 4, dtype=T.int64)
t = T.tensor([0, 1, 2, 3])
m = T.tensor([True, False, True, True])
M = d > 0
v = T.ones(4)
c = T.ones(4, dtype=T.complex64)
A = d @ d.t() + 4 * T.eye(4)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
"""

CALLS = """
x.chunk(2, dim=1); x.chunk(2, 1); x.split(2, dim=-1); x.split([1, 3], 1); T.flatten(x, start_dim=1); x.flatten(0); x.unsqueeze(dim=1)
x.unsqueeze(1); x.squeeze(dim=1); x.transpose(dim0=0, dim1=1); x.transpose(0, 1); x.t(); x.T; x.mT; x.unbind(dim=0)
x.select(dim=1, index=0); x.narrow(dim=1, start=0, length=2); x.diagonal(dim1=-2, dim2=-1); x.tensor_split(2); x.hsplit(2)
x.unfold(1, 2, 1); x.movedim(0, 1); x.swapaxes(0, 1); x.view_as(d); x.expand_as(x); x.view([2, 8]); x.reshape((2, -1)); x.reshape(-1)
T.permute(x, (1, 0)); T.permute(x, dims=[1, 0]); x[:, :, None].expand(-1, -1, 3); x.contiguous(); x.ravel(); x.view(-1, 2); x[0]; x[-1]
x[:, 1:]; x[..., 0]; x[:, None]; x[1:3, 2]; x[i]; x[:, i]; x[i, i]; x[t, t]; x[m]; x[M]; x[[0, 2]]; list(x); x[0, 0]; x[::2]
x.sum(dim=1, keepdim=True); x.sum((0, 1)); x.mean(dim=-1); x.mean(); x.max(dim=1); x.max(); x.argmax(dim=1); x.argmax(); x.amax(1)
x.var(dim=0); x.std(); x.norm(); x.norm(dim=1); x.norm(p=1); T.linalg.norm(x, dim=1); x.cumsum(dim=1); x.prod(1)
x.logsumexp(dim=-1, keepdim=True); x.median(); x.quantile(.5); (x > 0).any(); (x > 0).all(1); T.softmax(x, dim=1); x.softmax(-1)
T.cat([x, d], dim=1); T.cat((x, x)); T.stack([x, x], dim=1); x.clamp(min=0); x.clamp(-1, 1); T.add(x, x, alpha=2)
T.addcmul(x, x, x, value=.5); T.lerp(x, d, .3); x.topk(2, dim=1); x.sort(dim=1); x.argsort(dim=1); x.gather(1, I); x.index_select(0, i)
x.masked_fill(M, 0.); T.where(M, x, 0.); T.where(M, x, d); x.scatter_add(1, I, d); x.index_add(0, i, d[:2]); x.masked_select(M)
M.nonzero(); M.nonzero(as_tuple=True); T.triu(x, diagonal=1); T.tril(x); x.flip(0); T.flip(x, dims=(0,)); x.roll(1, 0); x.repeat(2, 2)
x.repeat_interleave(2, dim=0); T.outer(v, x[0]); T.meshgrid(t, i, indexing="ij"); T.einsum("ij,jk->ik", x, x)
T.einsum("bij,bjk->bik", z, z); x @ v; x @ x; T.bmm(z, z); T.baddbmm(z, z, z); T.addmm(x, x, x, beta=.5, alpha=2)
T.tensordot(x, x, dims=1); T.matmul(z, d); x + 1; 1 - x; x * d; x / 2; x ** 2; -x; x.exp(); x.abs(); x > 0; x == d; x.pow(3); x.sqrt()
x.float(); x.double(); x.to(T.float64); x.to("cpu"); x.clone(); x.detach(); x.sum().item(); x.tolist(); x.detach().numpy()
T.from_numpy(A.numpy()); x.size(0); x.shape[0]; x.shape; len(x); x.dtype; x.device; x.numel(); x.dim(); x.requires_grad; x.grad_fn
T.equal(x, d); T.allclose(x, d); x.bool(); x.type(T.float64); x.new_zeros(2); x.new_tensor([1.]); T.zeros_like(x); T.ones_like(x)
T.rand_like(x); T.ones(4, 4); T.zeros((4, 4), dtype=T.float32); T.full((4, 4), 2.); T.arange(4); T.linspace(0, 1, 5); T.eye(4)
T.tensor([1., 2., 3.]); T.tensor(1.); T.randn(4, 4); T.rand(4); T.randint(0, 4, (4,)); T.randperm(4); T.empty(4); T.as_tensor(A)
T.bernoulli(d.sigmoid()); T.multinomial(d.abs() + 1, 1); T.bincount(i); T.unique(i); F.one_hot(i, 4); d.zero_(); d.fill_(1.); d.copy_(A)
d.add_(1); d.mul_(d); d.__setitem__((0, 0), 1.); d.__setitem__(M, 0.); d.__setitem__((slice(None), 0), v); d.normal_(); d.uniform_()
d.clamp_(0, 1); nn.Linear(4, 4)(x); net(x); nn.LayerNorm(4)(x); nn.BatchNorm1d(4)(x); nn.BatchNorm1d(4).eval()(x); nn.Dropout(.5)(x)
nn.Dropout(.5).eval()(x); nn.Embedding(5, 4)(i); nn.GRUCell(4, 4)(x); nn.LSTMCell(4, 4)(x); nn.LSTM(4, 4, batch_first=True)(z)
nn.GRU(4, 4)(z); nn.RNN(4, 4)(z); nn.MultiheadAttention(4, 2, batch_first=True)(z, z, z)
nn.MultiheadAttention(4, 2, batch_first=True)(z, z, z, need_weights=False); nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)(z)
nn.Conv2d(1, 2, 3, padding=1)(y); nn.Conv1d(4, 2, 3, padding=1)(z); nn.ConvTranspose2d(1, 2, 2, stride=2)(y); nn.MaxPool2d(2)(y)
nn.AvgPool2d(2)(y); nn.AdaptiveAvgPool2d(1)(y); nn.Upsample(scale_factor=2)(y); nn.Upsample(scale_factor=2, mode="bilinear")(y)
nn.PixelShuffle(2)(x.reshape(1, 4, 2, 2)); nn.Flatten()(z); nn.Softmax(dim=1)(x); nn.LogSoftmax(dim=1)(x); nn.GELU()(x); nn.SiLU()(x)
nn.LeakyReLU(.1)(x); nn.ELU()(x); nn.Tanh()(x); nn.Sigmoid()(x); nn.PReLU()(x); nn.Hardtanh()(x); nn.Softplus()(x); nn.GroupNorm(2, 4)(x)
nn.RMSNorm(4)(x); nn.InstanceNorm2d(1)(y); nn.MSELoss()(x, d); nn.L1Loss()(x, d); nn.SmoothL1Loss()(x, d); nn.CrossEntropyLoss()(x, t)
nn.CrossEntropyLoss(label_smoothing=.1)(x, t); nn.CrossEntropyLoss(weight=v)(x, t); nn.NLLLoss()(x, t)
nn.BCEWithLogitsLoss()(x, M.float()); nn.KLDivLoss(reduction="batchmean")(x, d); nn.HuberLoss()(x, d); nn.CosineEmbeddingLoss()(x, x, v)
nn.TripletMarginLoss()(x, d, x); nn.CosineSimilarity()(x, x); nn.PairwiseDistance()(x, x); nn.Bilinear(4, 4, 2)(x, x)
F.relu(d, inplace=True); F.normalize(x, dim=1); F.pad(x, (1, 1)); F.pad(y, (1, 1, 1, 1), mode="reflect"); F.pad(x, (1, 1), value=1.)
F.unfold(y, 2); F.interpolate(y, scale_factor=2, mode="nearest"); F.interpolate(y, size=(8, 8), mode="bilinear", align_corners=False)
F.dropout(x, p=.1, training=True); F.dropout(x, p=.1, training=False); F.gumbel_softmax(x, tau=1.)
F.scaled_dot_product_attention(y, y, y, is_causal=True); F.linear(x, d); F.glu(x, dim=-1)
F.scaled_dot_product_attention(y, y, y, attn_mask=M); F.adaptive_avg_pool2d(y, (1, 1)); F.avg_pool2d(y, kernel_size=2, stride=2)
F.max_pool2d(y, kernel_size=2, stride=2); F.grid_sample(y, T.zeros(1, 2, 2, 2), align_corners=False); F.cosine_similarity(x, x, dim=-1)
F.cross_entropy(x, t, reduction="sum"); F.cross_entropy(x, t, ignore_index=0); F.mse_loss(x, d, reduction="none")
F.nll_loss(x, t, reduction="none"); F.softplus(x); F.log_softmax(x, dim=-1); F.layer_norm(x, (4,)); F.conv2d(y, y, padding=1)
T.linalg.inv(A); T.linalg.det(A); T.linalg.solve(A, d); T.linalg.eigh(A); T.linalg.svd(A); T.linalg.cholesky(A); T.linalg.qr(A)
T.fft.fft(x); T.fft.rfft(x, dim=-1); c * c; c.abs(); T.view_as_real(c); c.conj(); c.real; list(net.parameters()); net.state_dict()
net.zero_grad(); net.train(); T.distributions.Normal(0., 1.).log_prob(x); T.distributions.Normal(x, v).rsample()
T.distributions.Categorical(logits=x).sample(); T.nn.utils.clip_grad_norm_(list(net.parameters()), 1.); T.no_grad(); str(d)
x[None]; x[..., None]; x[None, :, None]; x[i, 0]; x[0, i]; x[[0, 1], [1, 2]]; T.where(M); x.as_strided((2, 2), (2, 1))
T.view_as_complex(x.view(4, 2, 2)); T.bmm(z, z.transpose(1, 2)); T.baddbmm(z[:, :, :4], z, z.transpose(1, 2)); T.addmm(x, x, x.t())
x.index_put((i,), x[:2]); x.index_add(0, i, x[:2]); T.linalg.cross(x[:, :3], x[:, 1:]); 2. ** x; 5 % v; 5 // v; M & M; M | ~M; t % 2; t // 2
T.addcmul(x, x, d, value=2); T.hypot(x, d); x.new_full((2,), 1.); T.argwhere(M); d.__setitem__(0, d[1]); d.__setitem__((slice(None), 0), d[:, 1])
d.__setitem__((i, i), 1.); d.__setitem__(i, d[:2] + 1); d.__setitem__((slice(None), i), 1.); T.linalg.diagonal(x); T.meshgrid(v, v)
T.broadcast_tensors(x, x[0]); T.bincount(i, minlength=4); T.searchsorted(v.cumsum(0), v); T.bucketize(d, v.cumsum(0)); x.take(i); T.dot(x[0], v)
T.trace(x); x.tril(); T.logit(d.sigmoid()); T.cummax(x, 0); T.std_mean(x); T.histc(d, 4); T.unique_consecutive(i); x.view_as(d); x.vsplit(2)
T.linalg.lstsq(A, d); T.linalg.lu_factor(A); T.cholesky_solve(d, T.linalg.cholesky(A)); d.t().contiguous(); T.normal(d, v); d.bernoulli_(.5)
"""


def written(text: str, library: Any, requires_grad: bool) -> Step:
    """Return a step that runs an expression; what makes modules in it runs before."""
    space = {"T": library, "F": library.nn.functional, "nn": library.nn}
    space["x"] = (library.arange(16.0).reshape(4, 4) / 8 - 1).requires_grad_(requires_grad)
    exec(OPERANDS, space)
    if text.startswith("nn."):
        made, _, operands = text.rpartition(")(")
        space["module"] = eval(made + ")", space)
        text = f"module({operands}"
    return eval(f"lambda: {text}", space)  # type: ignore[no-any-return]


def cases(words: list[str]) -> Iterator[Case]:
    """Yield the calls in which all the words are."""
    for text in (one.strip() for line in CALLS.strip().split("\n") for one in line.split(";")):
        if all(word in text for word in words):
            for kind in ("no gradient", "gradient"):
                yield text, kind, [written(text, library, kind == "gradient") for library in (ours, torch)]


if __name__ == "__main__":
    main(__doc__, cases)
