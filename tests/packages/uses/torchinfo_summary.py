"""Summaries of networks: parameters, shapes and multiplications."""

import torch
from torchinfo import summary

from ..helpers import integers


def run():
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                              torch.nn.Linear(8 * 8 * 8, 10))
    found = summary(net, input_size=(2, 3, 16, 16), verbose=0, col_names=("input_size", "output_size", "num_params", "mult_adds"))
    recurrent = summary(torch.nn.LSTM(4, 6, batch_first=True), input_size=(2, 5, 4), verbose=0)
    encoder = summary(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), input_size=(2, 5, 8), verbose=0)
    embedding = summary(torch.nn.Sequential(torch.nn.Embedding(10, 4), torch.nn.Linear(4, 2)), input_data=integers(10, 2, 3), verbose=0)
    return {name: [s.total_params, s.trainable_params, s.total_mult_adds, s.total_output_bytes, len(s.summary_list), len(str(s).splitlines())]
            for name, s in (("convolution", found), ("recurrent", recurrent), ("encoder", encoder), ("embedding", embedding))}
