"""Gradients per sample with ``torch.func``: clipped one by one, an ensemble under vmap, a Hessian-vector product."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, grad_and_value, jacrev, jvp, stack_module_state, vmap


class SimpleCNN(nn.Module):
    def __init__(self):
        super(SimpleCNN, self).__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.fc1 = nn.Linear(36, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        return F.log_softmax(self.fc1(torch.flatten(x, 1)), dim=1)


def run(same):
    model = same.start(SimpleCNN())
    data = torch.from_numpy(same.rng.randn(12, 1, 8, 8)).float()
    targets = torch.from_numpy(same.rng.randint(0, 5, 12))
    params = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def compute_loss(params, buffers, sample, target):
        predictions = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
        return F.nll_loss(predictions, target.unsqueeze(0))

    ft_compute_sample_grad = vmap(grad_and_value(compute_loss), in_dims=(None, None, 0, 0))
    losses = []
    for _ in range(4):
        grads, values = ft_compute_sample_grad(params, buffers, data, targets)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
        factor = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        for key, value in params.items():
            clipped = torch.einsum("i,i...->...", factor, grads[key]) / len(data)
            params[key] = value - 0.5 * clipped
        losses += [values.mean().item(), norms.max().item()]

    models = [same.start(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))) for _ in range(3)]
    stacked, stacked_buffers = stack_module_state(models)
    base = copy.deepcopy(models[0])
    x = torch.from_numpy(same.rng.randn(6, 4)).float()
    out = vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(stacked, stacked_buffers, x)
    assert torch.allclose(out, torch.stack([m(x) for m in models]), atol=1e-6)
    f = lambda p: functional_call(base, p, (x,)).pow(2).mean()
    first = {k: v.detach() for k, v in models[0].named_parameters()}
    _, product = jvp(grad(f), (first,), ({k: torch.ones_like(v) for k, v in first.items()},))
    jacobian = vmap(jacrev(lambda row: base(row)))(x)
    return [*losses, *(value.norm().item() for value in product.values()), jacobian.std().item()]
