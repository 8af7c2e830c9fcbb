"""The statements that programs are drawn from, as text with holes.

Holes: {a} {b} {c} floating tensors (b and c preferably of a's shape or one that goes with it), {p} {q} leaves that require grad, {r} a
tensor that requires grad, {i} an integer tensor, {m} a boolean one, {z} {w} complex ones, {t} any tensor; {a:(3, 4)} a floating tensor
fitted to a shape; {u} a tuple of tensors; {o} an optimizer; {f} a module; {x} an array; {d} {e} dims of a; {idx} an index for it; {v} a
number; {n} a small count; {s} a seed; {new} {new2} new names. A hole that nothing fits makes the draw void. In some programs complex
numbers are drawn as floating ones are.
"""

from __future__ import annotations

from typing import Any

from . import ops
from .further import FURTHER
from .training import MODULE, OPTIMIZER
from .wider import WIDER

#: weight, templates
FAMILIES: dict[str, tuple[int, list[Any]]] = {}


def family(name: str, weight: int, text: str) -> None:
    FAMILIES[name] = weight, [line.strip().replace("\\n", "\n") for line in text.strip().split("\n") if line.strip()]


family("leaf", 3, """
{new} = make({s}, {shape}, {dtype}).requires_grad_()
{new} = make({s}, {shape}, {dtype}).requires_grad_()
{new} = make({s}, {shape}, {dtype})
{new} = make({s}, {shape}, {dtype}).t().requires_grad_()
{new} = make({s}, {shape}, 'int64')
{new} = make({s}, {shape}, 'bool')
{new} = make({s}, {shape}, {dtype})
{new} = make({s}, {shape}, 'int32')
{new} = make({s}, {shape}, 'complex128')
{new} = make({s}, {shape}, {dtype})[..., ::2]
{new} = make({s}, {shape}, {dtype}).requires_grad_()[None] * 1.5
{new} = make({s}, (3, 1), {dtype}).expand(3, 4)
{new} = make({s}, (2, 3, 2, 3), {dtype}).to(memory_format=torch.channels_last).requires_grad_()
{new} = torch.nn.Parameter(make({s}, {shape}, {dtype}))
{new} = {a}.detach().clone().requires_grad_()
{new} = torch.zeros_like({a})
{new} = torch.ones_like({a}, requires_grad=True)
{new} = torch.full({shape}, {v})
{new} = torch.empty_like({a}).fill_({v})
{new} = {a}.new_zeros({shape})
{new} = torch.arange({n}, dtype=torch.float64, requires_grad=True)
{new} = torch.tensor({v}, requires_grad=True)
{new} = torch.tensor({a}.tolist())
{new} = torch.eye({n})
""")
family("unary", 6, """
{new} = {a}.sin()
{new} = {a}.exp()
{new} = {a}.tanh()
{new} = {a}.sigmoid()
{new} = {a}.relu()
{new} = {a}.abs()
{new} = {a}.square()
{new} = -{a}
{new} = {a} ** 2
{new} = {a} ** 3
{new} = ({a}.abs() + 0.5).sqrt()
{new} = ({a}.abs() + 0.5).log()
{new} = ({a}.square() + 1).rsqrt()
{new} = 1 / ({a}.square() + 1)
{new} = ({a}.square() + 1).reciprocal()
{new} = {a}.clamp(-0.5, 0.5)
{new} = {a}.clamp(min={v})
{new} = {a}.erf()
{new} = {a}.expm1()
{new} = {a}.atan()
{new} = {a}.sign()
{new} = {a}.floor()
{new} = F.gelu({a})
{new} = F.silu({a})
{new} = F.softplus({a})
{new} = F.leaky_relu({a}, 0.1)
{new} = F.elu({a})
{new} = F.hardtanh({a})
{new} = F.hardswish({a})
{new} = F.logsigmoid({a})
{new} = {a}.sinh()
{new} = torch.sinc({a})
{new} = {a}.logit(0.1)
{new} = torch.nan_to_num({a})
{new} = {a}.mul(1)
{new} = {a}.positive()
{new} = {a}.double()
{new} = {a}.float()
{new} = {a}.to(torch.float64)
{new} = {a}.type_as({b})
{new} = {a}.long()
{new} = {a} > 0
{new} = {a}.isnan()
{new} = {a}.contiguous()
{new} = {a}.clone()
{new} = F.dropout({a}, 0.0)
{new} = F.threshold({a}, 0.1, 0.2)
""")
family("binary", 6, """
{new} = {a} + {b}
{new} = {a} - {b}
{new} = {a} * {b}
{new} = {a} / ({b}.abs() + 1)
{new} = {a} + {v}
{new} = {v} - {a}
{new} = {a} * {v}
{new} = {v} / ({a}.abs() + 1)
{new} = {a} * {a}
{new} = {a} + {a}
{new} = torch.add({a}, {b}, alpha={v})
{new} = torch.maximum({a}, {b})
{new} = torch.minimum({a}, {b})
{new} = torch.where({a} > 0, {a}, {b})
{new} = torch.where({a} > {b}, {v}, {b})
{new} = torch.atan2({a}, {b})
{new} = torch.hypot({a}, {b})
{new} = {a}.lerp({b}, 0.25)
{new} = torch.addcmul({a}, {b}, {c}, value=0.5)
{new} = torch.addcdiv({a}, {b}, {c}.square() + 1)
{new} = torch.logaddexp({a}, {b})
{new} = ({a}.abs() + 0.5) ** {b}
{new} = {a}.fmod(0.7)
{new} = {a}.remainder(0.7)
{new} = {a} < {b}
{new} = {a} * ({b} > 0)
{new} = {a} + {i}
{new} = {a} * {m}
{new} = {i} + {v}
{new} = {i} // 2
{new} = {i} * {i}
{new} = {m} & {m}
{new} = ~{m}
{new} = F.mse_loss({a}, {b})
{new} = F.l1_loss({a}, {b}, reduction='none')
{new} = F.smooth_l1_loss({a}, {b})
{new} = F.cosine_similarity({a}, {b}, dim={d})
{new} = torch.dist({a}, {b})
{new} = torch.stack([{a}, {b}])
{new} = torch.stack([{a}, {b}], dim={d})
{new} = torch.cat([{a}, {b}], dim={d})
{new} = torch.cat([{a}, {a}])
{new} = torch.hstack([{a}, {b}])
{new}, {new2} = torch.broadcast_tensors({a}, {b})
{new} = torch.outer({a}.reshape(-1)[:3], {b}.reshape(-1)[:4])
{new}, {new2} = Twice.apply({a}, {b})
""")
family("view", 8, """
{new} = {a}[0]
{new} = {a}[-1]
{new} = {a}[1:]
{new} = {a}[:, 0]
{new} = {a}[..., 1]
{new} = {a}[..., ::2]
{new} = {a}[None]
{new} = {a}[:, None]
{new} = {a}[..., :-1]
{new} = {a}.t()
{new} = {a}.mT
{new} = {a}.T
{new} = {a}.transpose({d}, {e})
{new} = {a}.reshape(-1)
{new} = {a}.view(-1)
{new} = {a}.flatten()
{new} = {a}.unsqueeze({d})
{new} = {a}.squeeze()
{new} = {a}.squeeze({d})
{new} = {a}.expand(2, *{a}.shape)
{new} = {a}.expand_as({b})
{new} = {a}.broadcast_to((2, 3, 4))
{new} = {a}.narrow({d}, 0, 1)
{new} = {a}.select({d}, 0)
{new} = {a}.diagonal()
{new} = {a}.movedim({d}, {e})
{new} = {a}.permute(*range({a}.dim())[::-1])
{new}, {new2} = {a}.chunk(2, {d})[:2]
{new} = {a}.split(1, {d})[0]
{new} = {a}.unbind({d})[0]
{new} = {a}.unfold({d}, 2, 1)
{new} = {a}.as_strided((2, 2), (2, 1), {a}.storage_offset())
{new} = {a}.view_as({a})
{new} = {a}.detach()
{new} = {a}.data
{new} = {a}.swapaxes({d}, {e})
{new} = {a}.unflatten({d}, (-1, 1))
{new} = {a}.view({a}.shape + (1,))
{new} = {a}.real
{new} = Pass.apply({a})
{new} = torch.atleast_2d({a})
{new} = {a}.reshape({a}.shape[::-1])
{new} = {a}.tensor_split(2, {d})[0]
{new} = {a}.expand(*[-1] * {a}.dim())
{new} = {a}.ravel()
""")
family("shuffle", 4, """
{new} = {a}.flip({d})
{new} = {a}.roll(1, {d})
{new} = {a}.repeat(2, *[1] * ({a}.dim() - 1))
{new} = {a}.tile((2,))
{new} = {a}.repeat_interleave(2, {d})
{new} = {a}.tril()
{new} = {a}.triu(1)
{new} = {a}[torch.tensor([0, 0])]
{new} = {a}[{i}.reshape(-1)[:2]]
{new} = {a}[:, torch.tensor([0, -1])]
{new} = {a}[torch.tensor([0, 1]), torch.tensor([1, 0])]
{new} = {a}[{a} > 0]
{new} = {a}[{m}]
{new} = {a}.index_select({d}, torch.tensor([0, 0]))
{new} = {a}.gather({d}, torch.zeros_like({a}, dtype=torch.int64))
{new} = {a}.gather({d}, {i})
{new} = torch.take({a}, torch.tensor([0, 1]))
{new} = {a}.masked_select({a} > 0)
{new} = {a}.masked_fill({a} > 0, {v})
{new} = {a}.masked_fill({m}, {v})
{new} = {a}.index_fill({d}, torch.tensor([0]), {v})
{new} = {a}.index_add({d}, torch.tensor([0]), {a}.narrow({d}, 0, 1))
{new} = {a}.scatter({d}, torch.zeros_like({a}, dtype=torch.int64), {b})
{new} = {a}.scatter_add({d}, torch.zeros_like({a}, dtype=torch.int64), {a})
{new} = {a}.scatter({d}, {i}, {v})
{new} = {a}.contiguous().select_scatter({a}.select({d}, 0) * 2, {d}, 0)
{new} = {a}.contiguous().slice_scatter({a}.narrow({d}, 0, 1), {d}, 0, 1)
{new} = {a}.diag()
{new} = F.pad({a}, (1, 1))
{new} = F.pad({a}, (1, 0), value={v})
{new} = {a}.take_along_dim({a}.argsort({d}), {d})
{new} = F.one_hot({i})
{new} = F.embedding({i}, {a})
""")
family("reduction", 6, """
{new} = {a}.sum()
{new} = {a}.sum({d})
{new} = {a}.sum({d}, keepdim=True)
{new} = {a}.mean()
{new} = {a}.mean({d})
{new} = {a}.mean({d}, keepdim=True)
{new} = {a}.prod()
{new} = {a}.prod({d})
{new} = {a}.var({d})
{new} = {a}.std()
{new} = {a}.amax({d})
{new} = {a}.amin({d}, keepdim=True)
{new}, {new2} = {a}.max({d})
{new}, {new2} = {a}.min({d})
{new} = {a}.max()
{new} = {a}.min()
{new} = {a}.norm()
{new} = {a}.norm(dim={d})
{new} = {a}.norm(1)
{new} = {a}.logsumexp({d})
{new} = {a}.cumsum({d})
{new} = {a}.cumprod({d})
{new} = {a}.cummax({d})[0]
{new} = {a}.softmax({d})
{new} = {a}.log_softmax({d})
{new} = F.normalize({a}, dim={d})
{new} = {a}.argmax({d})
{new} = {a}.argsort(dim={d}, stable=True)
{new}, {new2} = {a}.sort(dim={d}, stable=True)
{new}, {new2} = {a}.topk(2, {d})
{new} = {a}.median()
{new}, {new2} = {a}.median({d})
{new}, {new2} = {a}.kthvalue(1, {d})
{new} = {a}.any({d})
{new} = ({a} > 0).all()
{new} = {a}.count_nonzero()
{new} = {a}.sum_to_size([1] * {a}.dim())
{new} = torch.var_mean({a}, {d})[1]
{new} = {a}.logcumsumexp({d})
{new} = {a}.diff(dim={d})
{new} = {a}.nansum()
{new} = {i}.sum()
{new} = {m}.sum({d})
{new} = {i}.float().mean()
{new} = {a}.aminmax()[0]
""")
family("product", 3, """
{new} = {a} @ {b}
{new} = {a} @ {b}.mT
{new} = {a}.mT @ {b}
{new} = {a} @ {a}.mT
{new} = F.linear({a}, {b})
{new} = torch.einsum('ij,kj->ik', {a}, {b})
{new} = torch.einsum('...i,...i->...', {a}, {b})
{new} = torch.addmm({a}, {b}, {c})
{new} = torch.tensordot({a}, {b}, 1)
{new} = torch.bmm({a}, {b}.mT)
{new} = torch.mv({a}, {b})
{new} = torch.dot({a}.reshape(-1), {a}.reshape(-1))
{new} = torch.cdist({a}, {b})
{new} = torch.kron({a}, {b})
{new} = torch.linalg.vector_norm({a}, dim={d})
{new} = ({a}.mT @ {a} + 2 * torch.eye({a}.shape[-1])).inverse().contiguous()
{new} = torch.linalg.solve({a}.mT @ {a} + 2 * torch.eye({a}.shape[-1]), {a}.mT).contiguous()
""")
family("neural", 3, """
{new} = F.layer_norm({a}, {a}.shape[-1:])
{new} = F.layer_norm({a}, {a}.shape[-1:], {b})
{new} = F.rms_norm({a}, {a}.shape[-1:])
{new} = F.group_norm({a}.unsqueeze(0), 1)
{new} = F.batch_norm({a}, None, None, training=True)
{new} = F.cross_entropy({a}, torch.zeros({a}.shape[0], dtype=torch.int64))
{new} = F.cross_entropy({a}, {a}.softmax(1))
{new} = F.nll_loss({a}.log_softmax(-1), torch.ones({a}.shape[0], dtype=torch.int64))
{new} = F.binary_cross_entropy_with_logits({a}, {b}.sigmoid())
{new} = F.kl_div({a}.log_softmax(-1), {b}.softmax(-1), reduction='batchmean')
{new} = F.max_pool1d({a}, 2)
{new} = F.max_pool2d({a}.unsqueeze(0), 2)
{new} = F.avg_pool1d({a}, 2)
{new} = F.adaptive_avg_pool1d({a}, 2)
{new} = F.conv1d({a}, {b}[:, :, None].expand(-1, -1, 2))
{new} = F.conv1d({a}.unsqueeze(0), make({s}, (2, 3, 2), {dtype}))
{new} = F.interpolate({a}.unsqueeze(0), scale_factor=2)
{new} = F.scaled_dot_product_attention({a}, {b}, {b})
{new} = F.pixel_shuffle({a}.reshape(1, 4, 3, -1), 2)
{new} = F.glu({a}, {d})
{new} = F.prelu({a}, torch.tensor([0.25]))
""")
family("in place", 10, """
{a}.add_({b})
{a}.mul_({b})
{a}.sub_({v})
{a}.mul_({v})
{a}.div_({b}.abs() + 1)
{a}.copy_({b})
{a}.zero_()
{a}.fill_({v})
{a}.exp_()
{a}.tanh_()
{a}.relu_()
{a}.neg_()
{a}.abs_()
{a}.sigmoid_()
{a}.clamp_(-0.5, 0.5)
{a}.square_()
{a}.lerp_({b}, 0.5)
{a}.addcmul_({b}, {c})
{a}.masked_fill_({a} > 0, {v})
{a}.masked_fill_({m}, {v})
{a}.index_fill_({d}, torch.tensor([0]), {v})
{a}.index_add_({d}, torch.tensor([0]), {b}.narrow({d}, 0, 1).clone())
{a}.index_copy_({d}, torch.tensor([0]), {b}.narrow({d}, 0, 1))
{a}.scatter_({d}, torch.zeros_like({a}, dtype=torch.int64), {b})
{a}.scatter_add_({d}, torch.zeros_like({a}, dtype=torch.int64), {b})
{a}.masked_scatter_({a} > 0, {b}.clone())
{a}.cumsum_({d})
{a}.tril_()
{a}[0] = {v}
{a}[0] = {b}
{a}[...] = {b}
{a}[:, 0] = {v}
{a}[..., 0] = {b}
{a}[1:] = {a}[:-1].clone()
{a}[torch.tensor([0, 0])] = {v}
{a}[{a} > 0] = {v}
{a}[{a} > 0] *= 2
{a}[{m}] = {v}
{a}[0] += {v}
{a}[0] *= {b}
{a}[..., ::2] *= 2
{a} += {b}
{a} *= {v}
{a} -= {b}
{a} /= 2
{a}.t_()
{a}.unsqueeze_(0)
{a}.squeeze_()
{a}.transpose_({d}, {e})
{new} = {a} * 1; {new}.detach_()
{a}.requires_grad_()
{a}.data = {b}
{a}.data.mul_({v})
{a}.detach().add_({v})
{a}.T.mul_({v})
{a}.view(-1)[0] = {v}
{a}.unbind(0)[0].mul_(2)
{a}.diagonal().add_({v})
{a}.pow_(2)
{a}.where({m}, {b}).zero_()
F.relu({a}, inplace=True)
F.leaky_relu_({a}, 0.1)
F.hardtanh({a}, inplace=True)
F.elu({a}, inplace=True)
torch.nn.init.constant_({a}, {v})
{new} = torch.empty(0); torch.add({a}.contiguous(), {b}.contiguous(), out={new})
{new} = torch.zeros_like({a}); torch.mul({a}, 2, out={new})
{new} = torch.empty(0, dtype={a}.dtype); torch.sum({a}, {d}, out={new})
{new} = Dirty.apply({a} * 1)
{i}.add_(1)
{i}[0] = 2
{m}.logical_not_()
{m}[0] = True
{m}[...] = {v}
{i}[...] = {v}
{i}.fill_(2)
{t}[0] = 1
{t}.copy_({t})
torch.nn.utils.vector_to_parameters({a}, [{b}])
""")
family("backward", 9, """
{r}.sum().backward()
{r}.sum().backward(retain_graph=True)
{r}.sum().backward(retain_graph=True)
{r}.backward(torch.ones_like({r}), retain_graph=True)
{r}.backward({a}.clone(), retain_graph=True)
{r}.backward()
({r} * {r}).sum().backward(retain_graph=True)
{r}.mean().backward(create_graph=True)
{r}.square().sum().backward(create_graph=True)
{r}.sum().backward(inputs=[{p}])
({a} + {b}).sum().backward(retain_graph=True)
torch.autograd.backward([{r}.sum(), {r}.mean()], retain_graph=True)
{new}, = torch.autograd.grad(({r} * 0.5).sum(), [{p}], retain_graph=True, allow_unused=True)
{new}, = torch.autograd.grad(({r} * 0.5).sum(), {p})
{new}, {new2} = (g if g is None else g.clone() for g in torch.autograd.grad({r}.square().sum(), [{p}, {q}], retain_graph=True, allow_unused=True))
{new}, = torch.autograd.grad(({r} ** 3).sum(), {p}, create_graph=True, allow_unused=True)
{new}, = torch.autograd.grad({r}.sin().sum(), {r}, create_graph=True)
{new}, {new2} = (g if g is None else g * 1 for g in torch.autograd.grad({r}, [{p}, {q}], {a}, create_graph=True, allow_unused=True))
{new}, = torch.autograd.grad(({r} * 0.5).sum(), [{p}], retain_graph=True, allow_unused=True, materialize_grads=True)
{new} = torch.autograd.functional.vjp(lambda z: z.sin() * {b}, {a}, torch.ones_like({a}))[1]
{new} = torch.func.grad(lambda z: (z * z).sum())({a})
""")
family("gradient", 4, """
{new} = {p}.grad
{p}.grad = None
{p}.grad.zero_()
{p}.grad.mul_({v})
{p}.grad += 1
{p}.grad = torch.ones_like({p})
{p}.grad = {p}.detach()
{p}.grad = {a}
{new} = {p}.grad * 2
{new} = {p}.grad.view(-1)
{p}.grad.detach_()
torch.nn.utils.clip_grad_norm_([{p}], 1.0)
torch.nn.utils.clip_grad_norm_([z for z in [{p}, {q}] if z.grad is not None], 0.5)
{p}.grad is not None and torch.nn.utils.clip_grad_value_([{p}], 0.5)
{r}.retain_grad()
{r}.register_hook(lambda g: g * 2)
{r}.register_hook(lambda g: g.neg_() if False else None)
{new} = []; {r}.register_hook(lambda g: {new}.append(g.clone()))
{new} = []; {p}.register_post_accumulate_grad_hook(lambda z: {new}.append(z.grad.clone()))
{new} = []; {p}.register_hook(lambda g: {new}.append(g * 2))
{p}.requires_grad_(False)
{p}.requires_grad = not {p}.requires_grad
{new} = {r}.grad_fn is None
{new} = {a}.requires_grad, {a}.is_leaf, {a}.dim(), {a}.is_contiguous()
{new} = {a}.storage_offset(), {a}.element_size(), {a}.numel()
{new} = float({a}.sum())
{new} = {a}.tolist()
{new} = {a}.is_set_to({b})
""")
family("numpy", 2, """
{new} = {a}.detach().numpy()
{new} = {a}.numpy()
{x}[...] = {v}
{x}.reshape(-1)[0] = {v}
{new} = torch.from_numpy({x})
{new} = torch.tensor({x})
{new} = torch.as_tensor({x})
{new} = {a} * {x}
{new} = torch.from_numpy(np.arange(6.0)[::2])
""")

for _name, (_weight, _text) in (WIDER | FURTHER).items():
    family(_name, _weight, _text)
FAMILIES["op"] = 14, [[f"{{new}} = {t}" for t in found] for _, found in ops.templates()]
FAMILIES["module"] = 4, MODULE
FAMILIES["optimizer"] = 3, OPTIMIZER
#: families that a function that is compiled is drawn from
COMPILED = ("unary", "binary", "view", "shuffle", "reduction", "product", "neural", "in place", "backward", "gradient", "tie", "function", "graph", "out",
            "conjugate", "conjugate in place", "conjugate backward")  # fmt: skip
#: families that a program of complex numbers mostly is
COMPLEX = ("unary", "binary", "view", "shuffle", "reduction", "product", "in place", "backward", "gradient", "index", "layout", "op", "complex",
           "conjugate", "conjugate in place", "conjugate backward")  # fmt: skip
