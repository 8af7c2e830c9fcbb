"""Twenty kinds of convolutions of torch_geometric with their gradients, a variational autoencoder of a graph, and a graph of several kinds of nodes."""

import torch
from torch import nn
from torch_geometric import nn as layers
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import degree, get_laplacian, k_hop_subgraph, softmax, to_dense_adj

from ..helpers import data, fill, integers, numbers, train

EDGES = ("gatv2", "transformer", "pna", "nn", "gen")  # what reads features of edges


class Encoder(nn.Module):
    """Means and deviations of nodes."""

    def __init__(self):
        super().__init__()
        self.first, self.mean, self.deviation = layers.GCNConv(5, 8), layers.GCNConv(8, 4), layers.GCNConv(8, 4)

    def forward(self, x, edges):
        h = self.first(x, edges).relu()
        return self.mean(h, edges), self.deviation(h, edges)


def convolutions():
    aggregations, scalers = ["mean", "max", "std", "min"], ["identity", "amplification"]
    return {
        "sage": layers.SAGEConv(5, 4), "gat": layers.GATConv(5, 4, heads=2), "gatv2": layers.GATv2Conv(5, 4, edge_dim=3),
        "transformer": layers.TransformerConv(5, 4, heads=2, edge_dim=3), "gin": layers.GINConv(nn.Linear(5, 4)), "cheb": layers.ChebConv(5, 4, K=3),
        "arma": layers.ARMAConv(5, 4), "tag": layers.TAGConv(5, 4), "sg": layers.SGConv(5, 4, K=2), "appnp": layers.APPNP(3, 0.1),
        "pna": layers.PNAConv(5, 4, aggregations, scalers, torch.tensor([0, 2, 4, 2]), edge_dim=3), "nn": layers.NNConv(5, 4, nn.Linear(3, 20)),
        "edge": layers.EdgeConv(nn.Linear(10, 4)), "film": layers.FiLMConv(5, 4), "gated": layers.ResGatedGraphConv(5, 4),
        "gen": layers.GENConv(5, 4, edge_dim=3), "le": layers.LEConv(5, 4), "graph": layers.GraphConv(5, 4),
    }  # fmt: skip


def run():
    graph, result = Data(x=data(8, 5), edge_index=integers(8, 2, 24), edge_attr=data(24, 3, seed=9)), {}
    for name, convolution in convolutions().items():
        x = graph.x.clone().requires_grad_()
        y = fill(convolution)(x, graph.edge_index, **({"edge_attr": graph.edge_attr} if name in EDGES else {}))
        y.pow(2).sum().backward()
        result[name] = numbers(y, x.grad)
    model = fill(layers.VGAE(Encoder()), scale=0.4).eval()
    missing = integers(8, 2, 20, seed=8)

    def loss():
        z = model.encode(graph.x, graph.edge_index)
        return model.recon_loss(z, graph.edge_index, missing) + model.kl_loss() / 10

    kinds = HeteroData()
    kinds["user"].x, kinds["item"].x = data(4, 3), data(5, 2, seed=1)
    kinds["user", "buys", "item"].edge_index = torch.stack([integers(4, 9), integers(5, 9, seed=2)])
    kinds["item", "of", "user"].edge_index = torch.stack([integers(5, 9, seed=4), integers(4, 9, seed=5)])
    of_kinds = layers.HeteroConv({
        ("user", "buys", "item"): layers.SAGEConv((3, 2), 6), ("item", "of", "user"): layers.GATConv((2, 3), 6, add_self_loops=False)})
    found = fill(of_kinds)(kinds.x_dict, kinds.edge_index_dict)
    edges = graph.edge_index
    helpers = to_dense_adj(edges), degree(edges[0], 8), softmax(graph.edge_attr, edges[0]), get_laplacian(edges, normalization="sym")[1]
    near = k_hop_subgraph(3, 2, edges)[1].float()
    return {**result, "autoencoder": train(model, loss, 10), "kinds": numbers(found["user"], found["item"]), "helpers": numbers(*helpers, near)}
