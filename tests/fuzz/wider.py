"""Statements about indices, layouts and dtypes, transforms, hooks and arrays (holes as in `statements`): weight, templates by family."""

from __future__ import annotations

WIDER = {
    "index": (6, """
{new} = {a}[{idx}]
{new} = {a}[{idx}]
{new} = {a}[{idx}]
{new} = {t}[{idx}]
{new} = {a}[{idx}] * 2
{a}[{idx}] = {v}
{a}[{idx}] = {b}
{a}[{idx}] = {b}[{idx}]
{a}[{idx}] += {v}
{a}[{idx}] *= {b}
{t}[{idx}] = {v}
{t}[{idx}] = {t}
{a}[{idx}].mul_(2)
{a}[{idx}].zero_()
{new} = {a}.clone(); {new}[{idx}] = {v}
{new} = {a}.clone(); {new}[{idx}] = {b}
{new} = {a} * 1; {new}[{idx}] += {b}.sum()
{new} = {a}[[0, 0]]
{new} = {a}[({i} % 2).reshape(-1)]
{a}[({i} % 2).reshape(-1)] = {v}
{a}.index_put_((torch.tensor([0, 0]),), {b}, accumulate=True)
{new} = {a}.index_put((torch.tensor([0, -1]),), torch.tensor({v}, dtype={a}.dtype), accumulate=True)
{new} = torch.where({m})
{new} = torch.searchsorted({a:(3, 5)}.sort()[0], {a:(3, 2)})
{new} = {a}.nonzero()
{new} = torch.take({a}, {i} % 3)
{a}.put_(torch.tensor([0, 1]), {b}.reshape(-1)[:2])
{new} = {a}.index_reduce({d}, torch.tensor([0]), {a}.narrow({d}, 0, 1), 'prod')
{new} = {a}.scatter_reduce({d}, torch.zeros_like({a}, dtype=torch.int64), {b}, 'amax')
{new} = torch.index_select({a}, {d}, {i}.reshape(-1) % 1)
{new} = {a}.gather({d}, {i} % 2)
{a}.scatter_({d}, {i} % 2, {v})
{a}.index_copy_({d}, torch.tensor([0, 1]), {b}.narrow({d}, 0, 2))
{a}.diagonal().fill_({v})
{a}.fill_diagonal_({v})
{a}.flatten()[0] = {v}
{a}.narrow({d}, 0, 1).copy_({b}.narrow({d}, 0, 1))
{new} = {a}.as_strided((2, 3), (1, 1)); {new}.sum()
torch.select_copy({a}, {d}, 0)
for z in {a}.unbind({d}):\\n    {new} = z.sum()
for z in {a}:\\n    {new} = z
{new}, *{new2} = {a}
{new} = len({a}), {v} in {a}
"""),
    "layout": (3, """
{new} = {a:(2, 3, 2, 2)}.contiguous(memory_format=torch.channels_last)
{new} = {a:(2, 3, 2, 2)}.to(memory_format=torch.channels_last) * 2
{new} = {a:(1, 2, 2, 3, 2)}.contiguous(memory_format=torch.channels_last_3d)
{new} = {a}.contiguous(memory_format=torch.channels_last)
{new} = {a}.clone(memory_format=torch.contiguous_format)
{new} = {a}.clone(memory_format=torch.preserve_format)
{new} = torch.empty_like({a}, memory_format=torch.contiguous_format).copy_({a})
{new} = {a}.is_contiguous(memory_format=torch.channels_last)
{new} = {a}.to({b}.dtype)
{new} = {a}.to(torch.float32, copy=True)
{new} = {a}.type(torch.float64)
{new} = {a}.int()
{new} = {a}.bool()
{new} = torch.complex({a}, {b})
{new} = torch.view_as_complex({a:(3, 2)})
{new} = torch.view_as_real({t})
{new} = {t}.real
{new} = {t}.imag
{new} = {t}.conj()
{new} = {t}.abs()
{new} = {t}.angle()
{new} = {t} * {t}
{new} = {t} + {t}
{new} = {t} - {v}
{new} = {t} / 2
{new} = {t} // 2
{new} = {t} == {t}
{new} = torch.stack([{t}, {t}])
{new} = torch.cat([{t}, {t}])
{new} = torch.where({m}, {t}, {t})
{new} = {t} @ {t}
{new} = {t}.sum()
{new} = {t}.sum({d}, dtype=torch.float64)
{new} = {t}.mean()
{new} = {t}.prod()
{new} = {t}.cumsum({d})
{new} = {t}.max()
{new} = {t}.pow(2)
{new} = 2 ** {t}
{new} = {t} > {v}
{new} = torch.result_type({t}, {t})
{new} = torch.result_type({t}, {v})
{t}.add_({t})
{t}.mul_({t})
{t} += {v}
{t} /= 2
{t}.copy_({t})
{new} = {i}.view(torch.int32)
{new} = {a:(2, 4)}.float().view(torch.float64)
{new} = {a}._version
{new} = {a}.is_contiguous(), {a}.stride(), {a}.storage_offset()
{new} = {a}.data_ptr() == {b}.data_ptr()
{new} = {a}.untyped_storage().nbytes()
{new} = {a}._is_view(), {a}._base is {b}
{new} = {u}[0]
{new} = {u}[-1]
{new} = {u}[0] * {u}[-1]
{new} = torch.stack(list({u}))
"""),
    "transform": (3, """
{new} = torch.func.vmap(lambda z: (z * z).sum())({a})
{new} = torch.func.vmap(torch.sin, {d})({a})
{new} = torch.vmap(lambda z, y: z @ y, (0, None))({a:(3, 4)}, {b:(4,)})
{new} = torch.func.jacrev(lambda z: z.sin() * 2)({a:(3,)})
{new} = torch.func.jacfwd(lambda z: z.cumsum(0))({a:(3,)})
{new} = torch.func.hessian(lambda z: (z ** 3).sum())({a:(3,)})
{new} = torch.func.jvp(lambda z: z.exp(), ({a:(3,)},), ({b:(3,)},))
{new} = torch.func.vjp(lambda z: z.tanh(), {a})[1](torch.ones_like({a}))[0]
{new} = torch.func.grad(lambda z, y: (z * y).sum(), argnums=(0, 1))({a}, {b})
{new} = torch.func.vmap(torch.func.grad(lambda z: z.square().sum()))({a:(3, 4)})
{new} = torch.func.grad_and_value(lambda z: z.exp().mean())({a})
{new} = torch.autograd.functional.jacobian(lambda z: z.sin(), {a:(3,)}, create_graph=True)
{new} = torch.autograd.functional.hessian(lambda z: (z ** 3).sum(), {a:(3,)})
{new} = torch.autograd.functional.hvp(lambda z: (z ** 3).sum(), {a:(3,)}, {b:(3,)})[1]
{new} = torch.autograd.functional.jvp(lambda z: z * z, {a}, torch.ones_like({a}))[1]
{new} = torch.utils.checkpoint.checkpoint(lambda z: (z * z).sin(), {a}, use_reentrant=False)
{new} = torch.utils.checkpoint.checkpoint(lambda z, y: z * y.tanh(), {a}, {b}, use_reentrant=True)
with torch.autograd.graph.saved_tensors_hooks(lambda z: z.numpy(force=True).copy(), torch.from_numpy):\\n    {new} = {a} * {b}
with torch.autograd.graph.saved_tensors_hooks(lambda z: z * 2, lambda z: z):\\n    {new} = {a} * {a}
with torch.autograd.forward_ad.dual_level():\\n    f = torch.autograd.forward_ad\\n    {new} = f.unpack_dual(f.make_dual({a}, torch.ones_like({a})).sin())[1]
{new} = torch.autograd.grad({r}.sum(), {p}, torch.tensor(2.0, dtype={r}.dtype), retain_graph=True, allow_unused=True)
{new} = torch.autograd.grad([{r}.sum(), {r}.square().sum()], [{p}, {q}], retain_graph=True, allow_unused=True)
{new} = torch.autograd.grad({r}, {p}, torch.ones(2, *{r}.shape, dtype={r}.dtype), is_grads_batched=True, retain_graph=True, allow_unused=True)
"""),
    "hook": (3, """
{new} = {r}.register_hook(lambda g: g * 0.5); {new}.remove()
{r}.register_hook(lambda g: g + 1)
{r}.register_hook(lambda g: torch.zeros_like(g))
{r}.register_hook(lambda g: g.clone().mul_(3))
{new} = []; {r}.grad_fn is not None and {r}.grad_fn.register_hook(lambda gi, go: {new}.extend(g.clone() for g in go))
{r}.grad_fn is not None and {r}.grad_fn.register_hook(lambda gi, go: tuple(g if g is None else g * 2 for g in gi))
{r}.grad_fn is not None and {r}.grad_fn.register_prehook(lambda go: tuple(g * 2 for g in go))
{p}.register_post_accumulate_grad_hook(lambda z: z.grad.mul_(0.5))
{p}.register_post_accumulate_grad_hook(lambda z: setattr(z, 'grad', None))
{new} = []; torch.autograd.graph.register_multi_grad_hook([{p}, {q}], lambda gs: {new}.append(sum(g.sum() for g in gs if g is not None)))
{r}.retain_grad(); ({r} * 2).sum().backward(retain_graph=True)
{new} = [z for z in [{p}.grad, {q}.grad] if z is not None]
{r}.register_hook(lambda g: g); {r}.square().sum().backward(retain_graph=True); {r}.sum().backward(retain_graph=True)
{new} = {r} * 1; {new}.retain_grad(); {new}.square().sum().backward(retain_graph=True)
{new} = {r} * 1; {new}.register_hook(lambda g: g * 2); {new}.mul_({v}); {new}.sum().backward(retain_graph=True)
with torch.no_grad():\\n    {p}.sub_({p}, alpha=0.1)
with torch.no_grad():\\n    {p}.sub_({p}.grad, alpha=0.1); {p}.grad = None
with torch.no_grad():\\n    {p}[{idx}] = {v}
with torch.set_grad_enabled({r}.dim() > 1):\\n    {new} = {r} * 2
{new} = torch.is_grad_enabled()
{p}.data = {p}.data.clone().mul_({v})
{p}.data[{idx}] = {v}
{new} = {r}.detach().requires_grad_(); ({new} * {r}).sum().backward(retain_graph=True)
{new} = Pass.apply({a}); {new}.mul_({v})
{new} = Twice.apply({a}, {a})
{new} = torch.autograd.Variable({a})
{new} = torch.autograd.gradcheck(torch.sin, ({a:(2,)}.double().detach().requires_grad_(),))
"""),
    "history": (3, """
{new}, {new2}, _ = Parts.apply({a} * 1, {b})
{new}, {new2}, _ = Parts.apply({r} * 1, {r}); {new}.mul_({v})
{new} = Parts.apply({a} * 1, {r})[2]; {new}.sum().backward()
{new} = {r} * 1; {new2} = {new}.view(-1); {new2}.mul_({v}); {new2}.register_hook(lambda g: g * 2); {new}.sum().backward(retain_graph=True)
{new} = {r} * 1; {new}.retain_grad(); {new2} = {new}[..., :1]; {new2}.retain_grad(); {new2}.zero_(); {new}.square().sum().backward(retain_graph=True)
{new} = {r}.clone(); {new2} = {new}.detach(); {new2}.mul_({v}); {new}.square().sum().backward()
{new} = {r} * 1; {new2} = {new}.t(); {new}.add_({b}); {new2} = {new2} * {new2}
{new} = {r}.exp(); {new2} = {new}.view_as({new}); {new2}.detach_()
{new} = {r}.exp(); {new}.detach_(); {new}.mul_({v})
{new} = {r} * 1; {new}.requires_grad_(); {new2} = {new} * {new}; {new}.data.mul_({v}); {new2}.sum().backward(retain_graph=True)
{p}.data = {a}.detach().clone()
{p}.data = {p}.data.reshape(-1)
{p}.data = {p}.data[..., :1]; ({p} * {p}).sum().backward()
{p}.data = make({s}, {shape}, {dtype}); {p}.sum().backward(create_graph=True)
{p}.grad = {p}.detach().clone(); {p}.square().sum().backward(create_graph=True)
{p}.square().sum().backward(create_graph=True); {p}.grad.square().sum().backward()
{p}.square().sum().backward(create_graph=True); {new} = {p}.grad; {p}.grad = None; ({new} * {p}).sum().backward()
{p}.grad = {p}.detach().sum().expand({p}.shape); {p}.sum().backward()
{new} = {p}.grad; {p}.sum().backward(); {new} = {new} is {p}.grad
{new} = {a}.detach().clone(); {new}.resize_({shape}).fill_({v})
{new} = {a}.detach().clone(); {new}.set_({b}.detach()); {new}.mul_({v})
{new} = {a}.detach().clone(); {new2} = {new}[..., :1]; {new}.set_({b}.detach()); {new2}.add_(1)
with torch.no_grad():\\n    {new} = {p}.resize_({p}.shape)
with torch.no_grad():\\n    {p}.set_({a}.detach().clone()); {p}.grad = None
with torch.no_grad():\\n    {new} = {r}[..., :1]\\n{new}.mul_({v})
with torch.no_grad():\\n    {new} = {r} * 1\\n    with torch.enable_grad():\\n        {new2} = {new} * {r}\\n    {new}.add_({new2})
with torch.inference_mode():\\n    with torch.enable_grad():\\n        {new} = {r} * {b}
with torch.inference_mode():\\n    with torch.enable_grad():\\n        {new} = {r}[..., :1]\\n{new2} = {new} * {v}
with torch.inference_mode():\\n    {new} = {a}.detach() * 1\\n{new2} = {new}.clone(); {new2}.requires_grad_()
torch.set_grad_enabled(False); {new} = {r} * 2; torch.set_grad_enabled(True); {new2} = {new} + {r}
{new} = torch.utils.checkpoint.checkpoint(lambda z: (z * 1).mul_(2).relu_() * z, {r}, use_reentrant=False); {new}.sum().backward()
{new} = torch.utils.checkpoint.checkpoint(lambda z, w: Twice.apply(z, w)[1].sin(), {r}, {b}, use_reentrant=False); {new}.sum().backward(retain_graph=True)
{new} = torch.utils.checkpoint.checkpoint_sequential([torch.sin, torch.exp], 2, {r}, use_reentrant=False); {new}.square().sum().backward()
{new} = torch.utils.checkpoint.checkpoint(lambda z: (z * z, z.sum()), {r}, use_reentrant=True); ({new}[0] * {new}[1]).sum().backward()
{new} = []; {new2} = {r} * 1; {new2}.register_hook(lambda g: {new}.append(torch.is_grad_enabled())); {new2}.square().sum().backward(create_graph=True)
{new} = torch.autograd.grad({r}.square().sum(), [{p}, {p}], allow_unused=True, retain_graph=True); {new} = {new}[0] is {new}[1]
torch.utils.swap_tensors({p}, {q})
{new}, {new2} = {a}.detach().clone(), {b}.detach().clone(); torch.utils.swap_tensors({new}, {new2}); {new}.mul_({v})
{new} = __import__('copy').deepcopy([{p}, {p}])
{new} = __import__('pickle').loads(__import__('pickle').dumps([{p}.detach(), {p}.detach()[..., :1]])); {new}[0].zero_()
{new} = {r} * 1; {new2} = {new}.unbind(-1); {new}.mul_({v}); {new2}[0].sum().backward()
{new} = torch.func.functional_call({f}, {f}.state_dict(), (({a:(3, 4)}).float(),))
{o}.zero_grad(); ({p} * {q}).sum().backward(); {o}.step(); {o}.step()
"""),
    "array": (2, """
{new} = np.asarray({a}.detach())
{new} = {x} + 1
{new} = {x} * {a}
{new} = {x}.copy()
{new} = {a}.detach().numpy()[..., :1]
{x} += 1
{new} = torch.from_numpy({x}).requires_grad_()
{new} = torch.from_numpy({x}.T)
{new} = torch.asarray({x})
{new} = torch.tensor({x}, dtype=torch.float32)
{new} = np.sin({a}.detach())
{a}.detach().numpy()[...] = {v}
{new} = {a} + np.float64({v})
{new} = {a} * np.float32({v})
{new} = torch.tensor(np.float32({v}))
{new} = {a}.detach().numpy().dtype.name
{new} = {a}.mul(torch.from_numpy({x}))
{a}.data.copy_(torch.from_numpy({x}))
"""),
}  # fmt: skip
