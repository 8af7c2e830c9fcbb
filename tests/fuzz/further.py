"""Statements about sequences, attention, schedulers, users' Functions, graphs, lists of tensors and distributions (holes as in `statements`)."""

from __future__ import annotations

#: users' Functions, as `program.HEADER` defines them
FUNCTIONS = """
class Context(torch.autograd.Function):
    # with a context that is set up apart, in forward mode and in batches too
    generate_vmap_rule = True

    @staticmethod
    def forward(x, k):
        return x.exp() * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y, None

    @staticmethod
    def jvp(ctx, t, _):
        (y,) = ctx.saved_tensors
        return t * y


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return ctx.saved_tensors[0] * 2 * g


class Needs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y if ctx.needs_input_grad[1] else None)
        return x * 2 + y * 3

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * 2).sum_to_size(x.shape) if ctx.needs_input_grad[0] else None, None if y is None else (g * 3).sum_to_size(y.shape)


class Nested(torch.autograd.Function):
    # a result that is no tensor, and gradients that nobody asked for
    @staticmethod
    def forward(ctx, x, text):
        ctx.shape = x.shape
        return x.sum(), text

    @staticmethod
    def backward(ctx, g, _):
        return g.expand(ctx.shape), None


class Saves(torch.autograd.Function):
    # an intermediate that is saved beside the result
    @staticmethod
    def forward(ctx, x):
        e = x.exp()
        ctx.save_for_backward(x, e)
        return e * x

    @staticmethod
    def backward(ctx, g):
        x, e = ctx.saved_tensors
        return g * e * (1 + x)


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


class Inner(torch.autograd.Function):
    # a backward pass within the forward, as within the backward
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            y = z.sin().sum()
        ctx.save_for_backward(x, torch.autograd.grad(y, z)[0])
        return y.detach()

    @staticmethod
    def backward(ctx, g):
        x, kept = ctx.saved_tensors
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            (found,) = torch.autograd.grad(z.sin().sum(), z)
        return g * (found + kept) / 2


class Shared(torch.autograd.Function):
    # two results, one of them a part of the other
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        return y, y[..., :1]

    @staticmethod
    def backward(ctx, g, h):
        g = g * 2
        return torch.cat([g[..., :1] + 2 * h, g[..., 1:]], -1)


"""
FURTHER = {
    "tie": (2, """
{new} = make({s}, {shape}, {dtype}).round().requires_grad_()
{new} = make({s}, {shape}, {dtype}).sign().requires_grad_()
{new} = {a}.round()
{new} = {a}.detach().round().requires_grad_()
{new} = {a}.relu().amax({d})
{new} = {a}.round().amin({d}, keepdim=True)
{new} = torch.maximum({a}.round(), {b}.round())
{new} = torch.minimum({a}, {a} * 1)
{new} = {a}.round().max()
{new} = {a}.round().aminmax(dim={d})
{new} = {a}.round().cummax({d})[0]
{new} = {a}.round().cummin({d})
{new} = {a}.round().prod({d})
{new} = {a}.round().prod()
{new} = {a}.round().cumprod({d})
{new} = {a}.round().abs() * {b}
{new} = {a}.round().clamp(-1, 1)
{new} = F.relu({a}.round()) * {b}
{new} = F.hardtanh({a}.round(), -1, 1)
{new} = F.max_pool1d({a:(2, 3, 6)}.round(), 2)
{new} = F.adaptive_max_pool2d({a:(1, 2, 4, 4)}.round(), 2)
{new} = F.max_pool2d({a:(1, 2, 4, 4)}.round(), 3, 1, 1)
{new} = ({a} * 0).norm(dim={d})
{new} = ({a} * 0).norm()
{new} = ({a} * 0).abs().sum({d})
{new} = ({a} * 0).std({d})
{new} = F.normalize({a} * 0, dim={d})
{new} = F.cosine_similarity({a} * 0, {b}, dim={d})
{new} = torch.cdist({a:(3, 4)}, {a:(3, 4)} * 1)
{new} = F.pairwise_distance({a:(3, 4)}, {a:(3, 4)} * 1)
{new} = torch.dist({a}, {a} * 1)
{new} = torch.hypot({a} * 0, {b} * 0)
{new} = torch.atan2({a} * 0, {b})
{new} = ({a} * 0) ** {b}.abs()
{new} = {a}.round() ** 2.0
{new} = {a}.round().xlogy({b}.square() + 1)
{new} = torch.linalg.norm({a:(3, 4)}.round(), float('inf'), {d})
{new} = torch.linalg.vector_norm({a}.round(), float('inf'))
{new} = {a}.round().mode({d})[0]
{new} = F.smooth_l1_loss({a}.round(), {b}.round(), reduction='none')
{new} = F.huber_loss({a}.round(), {b}.round())
{new} = {a}.round().renorm(2, 0, 1.0)
{new} = F.gelu({a}.round()).sign()
{new} = torch.heaviside({a}.round(), {b})
{new} = torch.where({a}.round() == 0, {a}, {b})
{new} = {a}.round().logsumexp({d})
{new} = ({a}.round() == {b}.round()).sum()
{new} = {a}.round().bool()
{new} = {a}.round().unique().numel()
{new} = {a}.scatter_reduce({d}, torch.zeros_like({a}, dtype=torch.int64), {a}.round(), 'amax')
{new} = {a}.round().index_reduce({d}, torch.tensor([0]), {a}.round().narrow({d}, 0, 1), 'amin')
"""),
    "sequence": (2, """
{new} = fill(torch.nn.LSTM(4, 3), {s}).double(); {new2} = {new}(torch.nn.utils.rnn.pack_padded_sequence({a:(3, 2, 4)}.double(), torch.tensor([3, 1])))[0].data
{new} = fill(torch.nn.GRU(4, 3, bidirectional=True), {s}).double(); {new2} = {new}(torch.nn.utils.rnn.pack_padded_sequence({a:(3, 2, 4)}.double(), [2, 3], enforce_sorted=False))[1]
{new} = fill(torch.nn.RNN(4, 3, batch_first=True), {s}); {new2} = {new}({a:(2, 3, 4)}.float(), {b:(1, 2, 3)}.float())
{new} = fill(torch.nn.LSTM(4, 3, num_layers=2, bias=False), {s}).double(); {new2} = {new}({a:(2, 3, 4)}.double(), ({b:(2, 3, 3)}.double(), {c:(2, 3, 3)}.double()))[1][1]
{new} = fill(torch.nn.GRU(4, 3, num_layers=2, bidirectional=True, batch_first=True), {s}).double(); {new2} = {new}({a:(2, 3, 4)}.double())[0]
{new} = fill(torch.nn.LSTMCell(4, 3), {s}).double(); {new2} = {new}({a:(2, 4)}.double(), ({b:(2, 3)}.double(), {c:(2, 3)}.double()))
{new} = torch.nn.utils.rnn.pad_sequence([{a:(3, 2)}, {b:(2, 2)}], batch_first=True)
{new} = torch.nn.utils.rnn.pad_sequence([{a:(3,)}, {b:(1,)}], padding_value={v})
{new} = torch.nn.utils.rnn.pack_sequence([{a:(3, 2)}, {b:(2, 2)}]).data
{new} = torch.nn.utils.rnn.pad_packed_sequence(torch.nn.utils.rnn.pack_padded_sequence({a:(3, 2, 4)}, [3, 2]))[0]
{new} = torch.nn.utils.rnn.unpad_sequence({a:(3, 2)}, torch.tensor([2, 1]))
{new} = fill(torch.nn.MultiheadAttention(4, 2, batch_first=True), {s}).double(); {new2} = {new}({a:(2, 3, 4)}.double(), {a:(2, 3, 4)}.double(), {a:(2, 3, 4)}.double(), key_padding_mask=torch.tensor([[False, False, True], [False, True, True]]))
{new} = fill(torch.nn.MultiheadAttention(4, 2, bias=False, add_bias_kv=True), {s}).double(); {new2} = {new}({a:(3, 4)}.double(), {b:(2, 4)}.double(), {b:(2, 4)}.double(), need_weights=False)[0]
{new} = fill(torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=2, add_zero_attn=True), {s}).double(); {new2} = {new}({a:(3, 1, 4)}.double(), {b:(2, 1, 3)}.double(), {c:(2, 1, 2)}.double(), average_attn_weights=False)
{new} = fill(torch.nn.MultiheadAttention(4, 1), {s}).double(); {new2} = {new}({a:(3, 2, 4)}.double(), {a:(3, 2, 4)}.double(), {a:(3, 2, 4)}.double(), attn_mask=torch.ones(3, 3).triu(1).bool())[0]
{new} = fill(torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 5, 0.0, 'gelu', batch_first=True), 2, enable_nested_tensor=False), {s}).double(); {new2} = {new}({a:(2, 3, 4)}.double(), is_causal=False, mask=torch.nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64))
{new} = fill(torch.nn.TransformerEncoderLayer(4, 2, 5, 0.0, norm_first=True), {s}).double(); {new2} = {new}({a:(3, 2, 4)}.double(), src_key_padding_mask=torch.tensor([[False, False, True], [False, False, False]]))
{new} = fill(torch.nn.Transformer(4, 2, 1, 1, 5, 0.0), {s}).double(); {new2} = {new}({a:(3, 2, 4)}.double(), {b:(2, 2, 4)}.double(), tgt_is_causal=False)
{new} = F.scaled_dot_product_attention({a:(2, 3, 4)}, {b:(2, 3, 4)}, {c:(2, 3, 4)}, is_causal=True)
{new} = F.scaled_dot_product_attention({a:(1, 2, 3, 4)}, {b:(1, 2, 2, 4)}, {c:(1, 2, 2, 3)}, attn_mask=make({s}, (3, 2), 'bool'))
{new} = F.scaled_dot_product_attention({a:(1, 4, 3, 4)}, {b:(1, 2, 3, 4)}, {c:(1, 2, 3, 4)}, scale=0.3, enable_gqa=True)
{new} = F.scaled_dot_product_attention({a:(2, 3, 4)}, {b:(2, 3, 4)}, {c:(2, 3, 4)}, attn_mask={a:(3, 3)})
{new} = F.ctc_loss({a:(4, 2, 3)}.log_softmax(-1), torch.tensor([[1, 2], [2, 2]]), (4, 3), (2, 1))
{new} = F.ctc_loss({a:(4, 3)}.log_softmax(-1), torch.tensor([1, 2]), torch.tensor(4), torch.tensor(2), reduction='sum', zero_infinity=True)
{new} = F.embedding_bag(torch.tensor([0, 2, 1, 2]), {a:(3, 4)}, torch.tensor([0, 2]), mode='sum', per_sample_weights={b:(4,)})
{new} = F.embedding_bag(torch.tensor([[0, 2], [1, 2]]), {a:(3, 4)}, mode='max')
{new} = F.embedding(torch.tensor([[0, 2], [2, 2]]), {a:(3, 4)}, padding_idx=2, scale_grad_by_freq=True)
{new} = F.embedding(torch.tensor([0, 2, 0]), {p}, max_norm=1.0)
{new} = fill(torch.nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4], div_value=2.0), {s}).double(); {new2} = {new}({a:(3, 4)}.double(), torch.tensor([0, 3, 5])).loss
{new} = torch.nn.NLLLoss(weight=torch.tensor([0.5, 1, 2, 0.25]).double(), ignore_index=1)({a:(3, 4)}.double().log_softmax(1), torch.tensor([0, 1, 3]))
{new} = torch.nn.CosineEmbeddingLoss(margin=0.2)({a:(3, 4)}, {b:(3, 4)}, torch.tensor([1, -1, 1]))
{new} = torch.nn.MultiMarginLoss(p=2)({a:(3, 4)}, torch.tensor([0, 1, 3]))
{new} = torch.nn.MultiLabelSoftMarginLoss()({a:(3, 4)}, make({s}, (3, 4), 'bool').double())
{new} = torch.nn.TripletMarginWithDistanceLoss(distance_function=torch.nn.PairwiseDistance(1), swap=True)({a:(3, 4)}, {b:(3, 4)}, {c:(3, 4)})
{new} = torch.nn.BCELoss(reduction='sum')({a}.sigmoid(), {a}.detach().tanh().abs())
{new} = torch.nn.BCEWithLogitsLoss(pos_weight={b:(4,)}.detach().abs())({a:(3, 4)}, make({s}, (3, 4), 'bool').double())
{new} = torch.nn.CrossEntropyLoss(weight={b:(4,)}.detach().abs() + 0.5, ignore_index=3, label_smoothing=0.2)({a:(3, 4)}, torch.tensor([0, 1, 3]))
{new} = F.grid_sample({a:(1, 2, 3, 3)}, F.affine_grid({b:(1, 2, 3)}, (1, 2, 2, 2), align_corners=False), mode='bilinear', padding_mode='reflection', align_corners=False)
{new} = F.grid_sample({a:(1, 1, 4, 4)}, {b:(1, 2, 3, 2)}.tanh(), mode='bicubic', padding_mode='border', align_corners=True)
{new} = F.fold(F.unfold({a:(1, 2, 4, 4)}, 2, stride=1), (4, 4), 2)
{new} = F.interpolate({a:(1, 2, 3, 4)}, size=(5, 2), mode='bicubic', align_corners=False)
{new} = F.interpolate({a:(1, 2, 4, 4)}, scale_factor=0.5, mode='bilinear', antialias=True)
{new}, {new2} = F.max_pool2d({a:(1, 2, 4, 4)}, 2, return_indices=True)
{new}, {new2} = F.max_pool1d({a:(1, 2, 6)}, 2, return_indices=True); {new} = F.max_unpool1d({new}, {new2}, 2)
{new} = torch.stft({a:(16,)}, 4, return_complex=True, window=torch.ones(4, dtype={a:(16,)}.dtype)).abs()
{new} = fill(torch.nn.utils.spectral_norm(torch.nn.Linear(4, 3)), {s}).eval().double(); {new2} = {new}({a:(2, 4)}.double())
{new} = torch.nn.utils.parametrizations.weight_norm(fill(torch.nn.Linear(4, 3), {s}).double(), dim=0); {new2} = {new}({a:(2, 4)}.double())
{new} = torch.nn.utils.parametrize.register_parametrization(fill(torch.nn.Linear(4, 4), {s}).double(), 'weight', torch.nn.Tanh()); {new2} = {new}({a:(2, 4)}.double())
{new} = __import__(torch.__name__ + '.nn.utils.prune').nn.utils.prune.l1_unstructured(fill(torch.nn.Linear(4, 3), {s}).double(), 'weight', 0.5); {new2} = {new}({a:(2, 4)}.double())
{new} = torch.nn.utils.fuse_linear_bn_eval(fill(torch.nn.Linear(4, 3), {s}).eval(), fill(torch.nn.BatchNorm1d(3), {s}).eval()); {new2} = {new}({a:(2, 4)}.float())
"""),
    "schedule": (2, """
{new} = torch.optim.lr_scheduler.ExponentialLR({o}, 0.5); {o}.step(); {new}.step(); {new2} = {new}.get_last_lr()
{new} = torch.optim.lr_scheduler.LambdaLR({o}, lambda k: 1 / (k + 1)); {o}.step(); {new}.step()
{new} = torch.optim.lr_scheduler.MultiplicativeLR({o}, lambda k: 0.9); {o}.step(); {new}.step(); {new}.step()
{new} = torch.optim.lr_scheduler.MultiStepLR({o}, [1, 3], 0.1); [({o}.step(), {new}.step()) for _ in range(3)]; {new2} = {new}.get_last_lr()
{new} = torch.optim.lr_scheduler.OneCycleLR({o}, 0.1, total_steps=5); [({o}.step(), {new}.step()) for _ in range(2)]; {new2} = {o}.param_groups[0]['lr']
{new} = torch.optim.lr_scheduler.CyclicLR({o}, 0.01, 0.1, 2, cycle_momentum=False); [({o}.step(), {new}.step()) for _ in range(3)]; {new2} = {o}.param_groups[0]['lr']
{new} = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts({o}, 2); [({o}.step(), {new}.step()) for _ in range(3)]; {new2} = {o}.param_groups[0]['lr']
{new} = torch.optim.lr_scheduler.ReduceLROnPlateau({o}, patience=0); [{new}.step(1.0) for _ in range(3)]; {o}.step()
{new} = torch.optim.lr_scheduler.SequentialLR({o}, [torch.optim.lr_scheduler.ConstantLR({o}, 0.5, 1), torch.optim.lr_scheduler.LinearLR({o}, 0.2)], [1]); [({o}.step(), {new}.step()) for _ in range(3)]; {new2} = {o}.param_groups[0]['lr']
{new} = torch.optim.lr_scheduler.ChainedScheduler([torch.optim.lr_scheduler.PolynomialLR({o}, 3), torch.optim.lr_scheduler.StepLR({o}, 1)]); {o}.step(); {new}.step(); {new2} = {new}.get_last_lr()
{new} = torch.optim.swa_utils.SWALR({o}, 0.05, 2); {o}.step(); {new}.step(); {new2} = {o}.param_groups[0]['lr']
{new} = torch.optim.swa_utils.AveragedModel({f}); {new}.update_parameters({f}); {o}.step(); {new}.update_parameters({f})
{new} = torch.optim.swa_utils.AveragedModel({f}, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.8)); {o}.step(); {new}.update_parameters({f})
{new} = []; {o}.register_step_post_hook(lambda o, args, kwargs: {new}.append(len(o.state)))
{o}.register_step_pre_hook(lambda o, args, kwargs: [z.grad.mul_(0.5) for g in o.param_groups for z in g['params'] if z.grad is not None] and None)
{new} = __import__('copy').deepcopy({o}.state_dict()); {o}.step(); {o}.load_state_dict({new})
{new} = torch.optim.Adam([{p}], lr=torch.tensor(0.1)); {new}.step()
{new} = torch.optim.SGD([{p}, {q}], lr=0.1, momentum=0.9, foreach=True); {new}.step(); {new}.step()
{new} = torch.optim.Adam([{p}], lr=0.1, betas=(0.5, 0.9), eps=0.1, foreach=False); {new}.step(); {new}.step()
{new} = torch.optim.AdamW([('w', {p})], lr=0.1, weight_decay=0.5); {new}.step()
{new} = torch.optim.Adagrad([{p}], initial_accumulator_value=0.5, weight_decay=0.1); {new}.step(); {new}.step()
{new} = torch.optim.Rprop([{p}], etas=(0.4, 1.5), step_sizes=(1e-3, 1.0)); {new}.step(); {new}.step()
{new} = torch.optim.RMSprop([{p}], alpha=0.5, weight_decay=0.1, momentum=0.3, centered=True, maximize=True); {new}.step(); {new}.step()
{new} = torch.optim.NAdam([{p}], weight_decay=0.1, decoupled_weight_decay=True); {new}.step(); {new}.step()
{new} = torch.optim.Muon([{p}], lr=0.1); {new}.step()
{new} = torch.optim.LBFGS([{p}], max_iter=4, line_search_fn='strong_wolfe'); {new}.step(lambda: ({new}.zero_grad(), {p}.square().sum())[1].backward() or {p}.square().sum())
{new} = {o}.param_groups[0]['params'][0].grad is None, len({o}.state)
{new} = {o}.state_dict(); {new}['param_groups'][0]['lr'] = 0.5; {o}.load_state_dict({new})
torch.nn.utils.get_total_norm([{a}, {b}])
{new} = torch.nn.utils.clip_grad_norm_([{p}, {q}], 0.5, norm_type=float('inf'))
{new} = torch.nn.utils.clip_grad_norm_({p}, 0.5, norm_type=1)
"""),
    "function": (3, """
{new} = Context.apply({a}, 2.0); {new}.sum().backward(retain_graph=True)
{new} = Context.apply({r}, {v})
{new} = Once.apply({r}); {new}.sum().backward(retain_graph=True)
{new} = Once.apply({r}); {new}.square().sum().backward(create_graph=True)
{new} = Needs.apply({a}, {b}); {new}.sum().backward(retain_graph=True)
{new} = Needs.apply({a}, {a}.detach())
{new}, {new2} = Nested.apply({r}, 'text'); {new}.sum().backward(retain_graph=True)
{new} = Nested.apply({a}, None)
{new} = Saves.apply({r}); {new}.mul_({v}); {new}.sum().backward(retain_graph=True)
{new} = Saves.apply({r}); ({new} * {new}).sum().backward(create_graph=True)
{new} = Same.apply({r}); {new2} = {new} is {r}; {new}.sum().backward(retain_graph=True)
{new} = Same.apply({a}); {new}.mul_({v})
{new} = Inner.apply({r}); {new}.sum().backward(retain_graph=True)
{new} = torch.func.vmap(Context.apply, (0, None))({a:(3, 4)}, 2.0)
{new} = torch.func.grad(lambda z: Context.apply(z, 3.0).sum())({a})
{new} = torch.func.jvp(lambda z: Context.apply(z, 3.0), ({a},), ({a}.cos(),))
{new} = torch.autograd.functional.jacobian(lambda z: Context.apply(z, 3.0), {a:(3,)})
{new} = torch.autograd.gradcheck(lambda z: Context.apply(z, 3.0), ({a:(2,)}.double().detach().requires_grad_(),))
{new}, {new2} = Shared.apply({r}); {new}.mul_({v})
{new}, {new2} = Shared.apply({r}); ({new} * {new2}).sum().backward(retain_graph=True)
"""),
    "graph": (3, """
{new} = torch.autograd.graph.get_gradient_edge({r} * 1); {new2}, = torch.autograd.grad([{new}], [{p}], [{a}], allow_unused=True)
{new} = {r} * 1; {new2} = torch.autograd.grad(({new} * {new}).sum(), [torch.autograd.graph.get_gradient_edge({new})])[0]
torch.autograd.backward([torch.autograd.graph.get_gradient_edge({r}.sum())], inputs=[{p}])
with torch.autograd.graph.save_on_cpu():\\n    {new} = {r}.exp() * {b}
with torch.autograd.graph.allow_mutation_on_saved_tensors():\\n    {new} = {r} * 1; {new2} = {new}.exp(); {new}.mul_({v}); {new2}.mul_(2); {new2}.sum().backward(retain_graph=True)
with torch.autograd.graph.allow_mutation_on_saved_tensors():\\n    {new} = {r}.sin() * {b}; {a}.detach().mul_({v}); {new}.sum().backward(retain_graph=True)
with torch.autograd.graph.disable_saved_tensors_hooks('no'):\\n    {new} = {r}.exp() * {b}
with torch.autograd.detect_anomaly():\\n    {new} = {r}.exp(); {new}.sum().backward(retain_graph=True)
with torch.autograd.set_multithreading_enabled(False):\\n    {r}.sum().backward(retain_graph=True)
{new} = {r}.grad_fn is not None and len({r}.grad_fn.next_functions) > 0
{new} = torch.no_grad()(lambda z: z * 2)({r})
{new} = torch.enable_grad()(lambda z: (z * 2).requires_grad)({r})
{new} = torch.inference_mode()(lambda z: z * 2)({r})
with torch.inference_mode(False):\\n    {new} = {r} * 2
with torch.autograd.graph.saved_tensors_hooks(lambda z: (z, 1), lambda z: z[0]):\\n    {new} = {r}.exp(); {new2} = {new} * {r}
{new} = {r} * 1; {new2} = {new}.register_hook(lambda g: None); {new}.retain_grad(); {new}.register_hook(lambda g: g * 3); {new}.sum().backward(retain_graph=True)
{new} = {r} * 1; {new}.register_hook(lambda g: g * 2); {new2} = {new}.detach_()
{new} = {r} * 1; {new}.retain_grad(); {new}.mul_({v}); {new}.retain_grad(); {new}.sum().backward(retain_graph=True)
{new} = {r}.view(-1); {new}.retain_grad(); {new}.mul_({v}); {new}.sum().backward(retain_graph=True)
{new} = {r}.sum(); {new2} = [{new}.backward(retain_graph=True) for _ in range(3)]
{new} = {r}.sum(); {r}.sum().backward(retain_graph=True, inputs=[{p}, {q}])
{new} = ({r} * {a}).sum(); {new}.backward(inputs=[{r}], retain_graph=True)
torch.autograd.backward({r}, {b}, retain_graph=True)
torch.autograd.backward([{r}, {r}], [{a}, {a} * 2], retain_graph=True)
torch.autograd.backward([{r} * 1, {p}], [torch.ones_like({r}), torch.ones_like({p})])
{new} = torch.autograd.grad([{r}, {r} * 2], [{p}], [torch.ones_like({r}), torch.ones_like({r})], retain_graph=True, allow_unused=True)
{new} = torch.autograd.grad({r}.sum(), [], retain_graph=True)
{new} = torch.autograd.grad({r}.sum(), [{r}, {p}], retain_graph=True, allow_unused=True, materialize_grads=True)
{new} = {p}.detach().requires_grad_(); {new2} = torch.autograd.grad(({new} * {p}).sum(), [{new}, {p}], create_graph=True); {new2}[0].sum().backward()
{new} = {r} * 1; {new2} = {new}.unsqueeze(0); {new}.mul_({v}); {new2}.mul_({v}); {new2}.sum().backward(retain_graph=True)
{new} = {r} * 1; {new2} = {new}[..., :1]; {new2} += {new}[..., 1:2]; {new}.sum().backward(retain_graph=True)
{new} = {r} * 1; {new2} = {new}.detach(); {new}.add_(1); {new2}.mul_(2); {new}.sum().backward(retain_graph=True)
{new} = {r}.expand(2, *{r}.shape); {new2} = {new}.clone(); {new2}[0].mul_({v}); {new2}.sum().backward(retain_graph=True)
{new} = torch.zeros_like({r}); {new}.copy_({r}); {new}[..., :1] = {v}; {new}.square().sum().backward(retain_graph=True)
{new} = torch.zeros({r}.numel() + 2, dtype={r}.dtype); {new}[1:-1].view({r}.shape).copy_({r}); {new}.square().sum().backward(retain_graph=True)
{new} = torch.empty_like({r}); torch.mul({r}.detach(), 2, out={new}); {new2} = {new} * {r}
{new} = [torch.zeros_like({r})]; {new}.append({new}[0] + {r}); {new}[0].add_({r}); {new}[0].sum().backward(retain_graph=True)
{new} = {r} * 2; {new2} = {new}.data; {new2}.mul_({v}); {new}.sum().backward(retain_graph=True)
{new} = {r} * 1; {new} **= 2; {new} /= 3; {new} -= {b}; {new}.sum().backward(retain_graph=True)
{new} = {p}.view(-1); {new2} = {p}.data_ptr() == {new}.data_ptr(); {new}.sum().backward()
with torch.no_grad():\\n    {p}.copy_({a})\\n({p} * {p}).sum().backward()
with torch.no_grad():\\n    {new} = {p}.view(-1); {new}.mul_({v})
{new} = {p}.grad; {p}.grad = None; {new2} = {new} is None or {p}.square().sum().backward()
torch.autograd.graph.increment_version({a})
{new} = torch.nn.Parameter({p}); {new2} = {new} is {p}; ({new} * {p}).sum().backward()
{new} = torch.nn.ParameterList([{p}, {q}]); sum(z.sum() for z in {new}).backward()
{new} = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.Tanh()]); {new2} = {new}[1]({new}[0]({r}))
"""),
    "list": (2, """
{new} = torch._foreach_add([{a}, {b}], [{a}, {b}], alpha=2)
{new} = torch._foreach_mul([{a}, {b}], {v})
{new} = torch._foreach_norm([{a}, {b}])
{new} = torch._foreach_exp([{a}, {b}])
torch._foreach_mul_([{a}, {b}], {v})
torch._foreach_add_([{a}], [{b}.clone()])
{new} = torch.block_diag({a:(2, 2)}, {b:(1, 3)})
{new} = torch.cartesian_prod({a:(2,)}, {b:(3,)})
{new} = torch.combinations({a:(4,)}, 2)
{new} = torch.meshgrid({a:(2,)}, {b:(3,)}, indexing='xy')
{new} = torch.chain_matmul({a:(2, 3)}, {b:(3, 4)}, {c:(4, 2)})
{new} = torch.linalg.multi_dot([{a:(2, 3)}, {b:(3, 4)}, {c:(4,)}])
{new} = torch.einsum('bij,bjk->bik', {a:(2, 3, 4)}, {b:(2, 4, 2)})
{new} = torch.einsum('ii->i', {a:(3, 3)})
{new} = torch.einsum('i,j,k->', {a:(2,)}, {b:(3,)}, {c:(2,)})
{new} = torch.einsum({a:(2, 3)}, [0, 1], {b:(3, 2)}, [1, 2], [2, 0])
{new} = torch.broadcast_tensors({a}, {b}, {c})
{new} = torch.column_stack(({a}, {b}))
{new} = torch.dstack(({a}, {b}))
{new} = torch.split({a:(5, 3)}, [2, 3]); {new}[1].mul(2).sum()
{new} = {a}.hsplit(1)
{new} = torch.vsplit({a:(4, 3)}, 2)
{new} = torch.cat([{a}, torch.empty(0), {b}])
{new} = torch.cat([{a}, {b}, {c}], dim={d})
{new} = torch.stack([{a}, {b}, {c}], -1).sum(-1)
{new} = torch.stack({u})
{new} = [z * 2 for z in {u}]
{new} = torch.cat([z.reshape(-1) for z in {u}])
{new} = sum({u})
{new} = torch.utils._pytree.tree_map(lambda z: z * 2, {'a': {a}, 'b': [{b}]})
{new} = torch.masked.sum({a}, {d}, mask={a} > 0)
{new} = torch.masked.softmax({a}, {d}, mask={a} > 0)
{new} = torch.masked.mean({a}, {d}, mask={a} > 0)
{new} = torch.masked.amax({a}, {d}, mask={a} > 0)
{new} = torch.masked.normalize({a}, 2, {d}, mask={a} > 0)
{new} = torch.nested.nested_tensor([1.0]) if False else {a} * 1
{new} = torch.distributions.Normal({a}, {b}.exp()).log_prob({c})
{new} = torch.distributions.Normal({a}, 1.0).cdf({b})
{new} = torch.distributions.kl_divergence(torch.distributions.Normal({a}, 1.0), torch.distributions.Normal({b}, 2.0))
{new} = torch.distributions.Categorical(logits={a:(3, 4)}).entropy()
{new} = torch.distributions.Categorical(logits={a:(3, 4)}).log_prob(torch.tensor([0, 1, 3]))
{new} = torch.distributions.Bernoulli(logits={a}).log_prob({a}.detach() > 0) if False else torch.distributions.Bernoulli(logits={a}).entropy()
{new} = torch.distributions.Beta({a}.exp(), {b}.exp()).log_prob({c}.sigmoid() * 0.9 + 0.05)
{new} = torch.distributions.Gamma({a}.exp(), {b}.exp()).entropy()
{new} = torch.distributions.Dirichlet({a:(3, 4)}.exp()).log_prob({b:(3, 4)}.detach().softmax(-1))
{new} = torch.distributions.MultivariateNormal({a:(3,)}, spd({b:(3, 3)})).log_prob({c:(3,)})
{new} = torch.distributions.Laplace({a}, 1.5).log_prob({b})
{new} = torch.distributions.StudentT({a}.exp() + 2).log_prob({b})
{new} = torch.distributions.TransformedDistribution(torch.distributions.Normal({a}, 1.0), [torch.distributions.transforms.SigmoidTransform()]).log_prob({b}.sigmoid() * 0.9 + 0.05)
{new} = torch.distributions.Independent(torch.distributions.Normal({a:(3, 4)}, 1.0), 1).log_prob({b:(3, 4)})
{new} = torch.distributions.Poisson({a}.exp()).log_prob(torch.tensor(2.0))
{new} = torch.distributions.VonMises({a}, 1.5).log_prob({b})
{new} = torch.distributions.kl_divergence(torch.distributions.Gamma({a}.exp(), {b}.exp()), torch.distributions.Gamma({b}.exp(), {a}.exp()))
"""),
    "out": (2, """
{new} = torch.empty(0, dtype={a}.dtype); torch.exp({a}.detach(), out={new})
{new} = torch.zeros_like({a}); torch.add({a}.detach(), {b}.detach(), out={new})
{new} = torch.zeros(3, 4, dtype={a}.dtype); torch.mul({a}.detach(), {b}.detach(), out={new}[:1])
{new} = {a}.detach().clone(); torch.sub({new}, {b}.detach(), out={new})
{new} = torch.empty(0, dtype={a}.dtype); torch.matmul({a:(3, 4)}.detach(), {b:(4, 2)}.detach(), out={new})
{new} = torch.empty(0, dtype={a}.dtype), torch.empty(0, dtype=torch.int64); torch.max({a}.detach(), {d}, out={new})
{new} = torch.empty(0, dtype={a}.dtype), torch.empty(0, dtype=torch.int64); torch.sort({a}.detach(), {d}, out={new})
{new} = torch.empty(0, dtype={a}.dtype); torch.cat([{a}.detach(), {a}.detach()], {d}, out={new})
{new} = torch.empty(0, dtype={a}.dtype); torch.cumsum({a}.detach(), {d}, out={new})
{new} = torch.empty(0, dtype=torch.float32); torch.mean({a}.detach().float(), {d}, out={new})
{new} = torch.empty(0, dtype=torch.bool); torch.gt({a}, 0, out={new})
{new} = torch.empty(0, dtype=torch.float64); torch.gt({a}, 0, out={new})
{new} = torch.empty(0, dtype={a}.dtype); torch.linalg.inv(spd({a:(3, 3)}.detach()), out={new})
{new} = torch.zeros(4, 3, dtype={a}.dtype).t(); torch.sin({a:(3, 4)}.detach(), out={new})
{new} = torch.zeros(2, 2, dtype={a}.dtype); torch.sin({a}.detach(), out={new})
{new} = torch.zeros(8, dtype={a}.dtype)[::2]; torch.tanh({a:(4,)}.detach(), out={new})
{new} = torch.empty(0, dtype=torch.int32); torch.add({i}, 1, out={new})
{new} = {a}.detach().clone(); torch.where({new} > 0, {new}, -{new}, out={new})
{new} = torch.arange(6, out=torch.empty(0)); {new2} = torch.stack([{new}, {new}], out=torch.empty(0))
{new} = torch.zeros_like({r}); torch.add({r}, 1, out={new})
with torch.no_grad():\\n    torch.add({p}, 1, out={p})
{new} = {a}.detach().clone(); {new}.apply_(lambda z: z + 1)
{new} = {a}.detach().clone(); {new}.map_({a}.detach(), lambda x, y: x * y)
{new} = {a}.to(torch.float16); {new2} = {new} * 2
{new} = {a}.half().requires_grad_() if not {a}.requires_grad else {a}.half(); {new2} = {new}.sum()
{new} = {a}.bfloat16().float()
{new} = {a}.to(torch.bfloat16) + {b}.to(torch.bfloat16)
{new} = ({a}.half() @ {b}.half().mT).float()
{new} = {a}.half().softmax({d})
{new} = {a}.half().mean({d})
{new} = {a}.half().exp().log()
{new} = {a}.half() + {b}
{new} = {a}.half() * {v}
{new} = F.layer_norm({a}.half(), {a}.shape[-1:])
{new} = {a}.cfloat() * 1j
{new} = torch.complex({a}, {a}).abs()
{new} = torch.polar({a}.abs(), {a}.detach())
{new} = torch.view_as_real(torch.complex({a}, {a}) * (1 + 2j))
{new} = torch.fft.rfft({a}, dim={d}).abs()
{new} = torch.fft.irfft(torch.fft.rfft({a:(3, 4)}) * 2)
{new} = (torch.complex({a}, {b}) * torch.complex({b}, {a}).conj()).real
"""),
}  # fmt: skip
