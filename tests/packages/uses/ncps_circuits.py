"""Neural circuits in continuous time: liquid networks and CfC cells of ncps learn a sequence"""

from ncps.torch import LTC, CfC
from ncps.wirings import AutoNCP, FullyConnected

from ..helpers import data, fill, numbers, train


def run():
    x, y = data(3, 7, 2), data(3, 7, 1, seed=1)
    found = {}
    nets = {
        "cfc": CfC(2, FullyConnected(6, 1)), "ncp": CfC(2, AutoNCP(12, 1, seed=3)), "plain": CfC(2, 5, proj_size=1),
        "lstm": CfC(2, FullyConnected(6, 1), mixed_memory=True), "ltc": LTC(2, FullyConnected(6, 1), ode_unfolds=3),
    }
    for name, net in nets.items():
        if name != "ltc":
            fill(net, scale=0.3)
        else:
            for k, p in enumerate(net.parameters()):
                p.data = 0.5 + 0.2 * data(*p.shape, seed=k).tanh()
        losses = train(net, lambda net=net: (net(x)[0] - y).square().mean(), lr=0.02)
        out, state = net(x)
        found[name] = [*losses, *numbers(out, *(state if isinstance(state, tuple) else (state,)))]
    return found
