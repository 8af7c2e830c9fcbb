"""A spiking network learns with surrogate gradients."""

import snntorch as snn
import torch
from snntorch import functional as SF
from snntorch import spikegen, surrogate

from ..helpers import data, fill, integers, numbers


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = fill(torch.nn.Linear(6, 12), scale=0.8), fill(torch.nn.Linear(12, 3), seed=1, scale=0.8)
        self.a = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid(slope=25))
        self.b = snn.Leaky(beta=0.8, spike_grad=surrogate.atan(), learn_beta=True)

    def forward(self, x):
        one, two, spikes, potentials = self.a.init_leaky(), self.b.init_leaky(), [], []
        for _ in range(8):
            spike, one = self.a(self.first(x), one)
            spike, two = self.b(self.second(spike), two)
            spikes.append(spike)
            potentials.append(two)
        return torch.stack(spikes), torch.stack(potentials)


def run():
    net, x, target = Net(), data(10, 6), integers(3, 10)
    optimizer, losses = torch.optim.Adam(net.parameters(), lr=0.02), []
    for _ in range(4):
        spikes, potentials = net(x)
        loss = SF.ce_rate_loss()(spikes, target) + SF.mse_membrane_loss(on_target=1.0)(potentials, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    alpha = snn.Synaptic(alpha=0.8, beta=0.9)
    syn, mem = alpha.init_synaptic()
    spike, syn, mem = alpha(data(4, 5), syn, mem)
    latency = spikegen.latency(data(3, 4).sigmoid(), num_steps=5, normalize=True, linear=True)
    return {"losses": losses, "spikes": numbers(spikes.detach(), potentials.detach()), "synaptic": numbers(spike, syn, mem), "latency": numbers(latency),
            "accuracy": [float(SF.accuracy_rate(spikes, target))]}
