"""Graph convolutions on a dense adjacency: a layer of its own with reset_parameters, masks of nodes, weight decay."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super(GraphConvolution, self).__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return self.__class__.__name__ + " (" + str(self.in_features) + " -> " + str(self.out_features) + ")"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super(GCN, self).__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    correct = preds.eq(labels).double()
    return correct.sum() / len(labels)


def run(same):
    rng = np.random.RandomState(3)
    labels = np.repeat(np.arange(3), 10)
    edges = (rng.rand(30, 30) < np.where(labels[:, None] == labels, 0.4, 0.05)).astype(np.float32)
    adj = np.maximum(edges, edges.T) + np.eye(30)
    adj = torch.FloatTensor(adj / adj.sum(1, keepdims=True))
    features = torch.FloatTensor(rng.rand(30, 12) + np.eye(12)[labels])
    labels = torch.LongTensor(labels)
    idx_train, idx_val = torch.LongTensor(range(0, 30, 2)), torch.LongTensor(range(1, 30, 2))
    model = same.start(GCN(features.shape[1], 8, labels.max().item() + 1, same.dropout(0.5)))
    assert "GraphConvolution (12 -> 8)" in repr(model)
    optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses = []
    for _ in range(6):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        model.eval()
        output = model(features, adj)
        losses += [loss_train.item(), F.nll_loss(output[idx_val], labels[idx_val]).item()]
        losses.append(accuracy(output[idx_val], labels[idx_val]).item())
    return losses
