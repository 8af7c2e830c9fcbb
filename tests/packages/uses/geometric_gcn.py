"""A graph convolutional network learns the classes of nodes."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool

from ..helpers import data, fill, integers, numbers, train


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = GCNConv(8, 16), SAGEConv(16, 16), GATConv(16, 4, heads=2, concat=False)

    def forward(self, graph):
        x = F.relu(self.one(graph.x, graph.edge_index))
        x = F.relu(self.two(x, graph.edge_index))
        return F.log_softmax(self.three(x, graph.edge_index), dim=1)


def run():
    graph = Data(x=data(20, 8), edge_index=integers(20, 2, 60), y=integers(4, 20, seed=3))
    assert graph.num_nodes == 20 and graph.num_edges == 60
    net = fill(Net(), scale=0.3)
    losses = train(net, lambda: F.nll_loss(net(graph), graph.y), steps=4)
    pooled = global_mean_pool(net(graph), torch.arange(20) // 7)
    return {"losses": losses, "pooled": numbers(pooled)}
