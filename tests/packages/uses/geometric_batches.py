"""Graphs in batches, with transforms and utilities of torch_geometric."""

import torch
import torch_geometric.transforms as T
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, MessagePassing, Sequential, global_add_pool
from torch_geometric.utils import add_self_loops, degree, softmax, to_dense_adj, to_undirected

from ..helpers import data, fill, integers, numbers, train


class Edges(MessagePassing):
    def __init__(self):
        super().__init__(aggr="max")
        self.mlp = torch.nn.Linear(8, 6)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return self.mlp(torch.cat([x_i, x_j - x_i], dim=1)).tanh()


def run():
    graphs = [Data(x=data(5 + k, 4, seed=k), edge_index=to_undirected(integers(5 + k, 2, 9, seed=k)), y=torch.tensor([float(k)])) for k in range(4)]
    graphs = [T.Compose([T.ToUndirected(), T.NormalizeFeatures()])(graph) for graph in graphs]
    batch = next(iter(DataLoader(graphs, batch_size=4)))
    model = fill(Sequential("x, edge_index, batch", [
        (Edges(), "x, edge_index -> x"), (GINConv(torch.nn.Linear(6, 6)), "x, edge_index -> x"), (global_add_pool, "x, batch -> x"),
        torch.nn.Linear(6, 1)]), scale=0.3)
    losses = train(model, lambda: ((model(batch.x, batch.edge_index, batch.batch)[:, 0] - batch.y) ** 2).mean(), lr=0.01)
    index, _ = add_self_loops(batch.edge_index)
    return {"losses": losses, "utils": numbers(degree(index[0]), to_dense_adj(batch.edge_index, batch.batch), softmax(batch.x[index[0], 0], index[1])),
            "sizes": [batch.num_graphs, batch.num_nodes]}
