"""TabNet: tables are classified with attention over their columns, in steps, and a network that fills masked columns in"""

import torch
from pytorch_tabnet.pretraining_utils import *  # noqa: F403  (what the package's own programs import)
from pytorch_tabnet.tab_network import TabNet, TabNetPretraining

from ..helpers import data, fill, integers, numbers, train


def run():
    x, y = data(32, 6), integers(3, 32, seed=1)
    groups = torch.eye(6)
    net = fill(TabNet(6, 3, n_d=4, n_a=4, n_steps=3, virtual_batch_size=16, group_attention_matrix=groups), scale=0.3)

    def loss():
        out, sparsity = net(x)
        return torch.nn.functional.cross_entropy(out, y) - 1e-3 * sparsity

    losses = train(net, loss)
    net.eval()
    out, _ = net(x)
    explained, masks = net.forward_masks(x)
    entmax = fill(TabNet(6, 2, n_d=4, n_a=4, mask_type="entmax", group_attention_matrix=groups), scale=0.3)
    entmax_losses = train(entmax, lambda: entmax(x)[0].square().mean(), lr=0.01)
    filling = fill(TabNetPretraining(6, n_d=4, n_a=4, group_attention_matrix=groups), scale=0.3).eval()
    rebuilt, embedded, _ = filling(x)
    return {"losses": losses, "out": numbers(out, explained, *masks.values()), "entmax": entmax_losses, "rebuilt": numbers(rebuilt, embedded)}
