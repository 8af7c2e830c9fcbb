"""Labels of sequences by a conditional random field (pytorch-crf), ordered classes (coral-pytorch), and reversed gradients (pytorch-revgrad)."""

import torch
from coral_pytorch.dataset import corn_label_from_logits, levels_from_labelbatch
from coral_pytorch.layers import CoralLayer
from coral_pytorch.losses import CornLoss, coral_loss
from pytorch_revgrad import RevGrad
from torchcrf import CRF

from ..helpers import data, fill, integers, numbers, train


def run():
    tagger, crf = fill(torch.nn.LSTM(5, 4, batch_first=True, bidirectional=True)), CRF(3, batch_first=True)
    for k, p in enumerate(crf.parameters()):
        p.data = data(*p.shape, seed=k).mul(0.1)
    head = fill(torch.nn.Linear(8, 3), 1)
    model, x, tags = torch.nn.ModuleList([tagger, crf, head]), data(4, 7, 5), integers(3, 4, 7)
    mask = torch.arange(7) < torch.tensor([[7], [5], [3], [1]])
    losses = train(model, lambda: -crf(head(tagger(x)[0]), tags, mask=mask, reduction="token_mean"), 4)
    paths = [tag for path in crf.decode(head(tagger(x)[0]), mask=mask) for tag in path]

    coral, grades = CoralLayer(5, 4), integers(4, 6)
    fill(coral)
    levels = levels_from_labelbatch(grades, num_classes=4)
    ordered = train(coral, lambda: coral_loss(coral(data(6, 5)), levels))
    corn, logits = CornLoss(num_classes=4), data(6, 3).requires_grad_()
    corn(logits, grades).backward()

    domain = fill(torch.nn.Sequential(torch.nn.Linear(5, 4), RevGrad(alpha=0.5), torch.nn.Linear(4, 2)))
    torch.nn.functional.cross_entropy(domain(data(6, 5)), integers(2, 6)).backward()
    return {"losses": losses, "paths": paths, "ordered": ordered, "corn": numbers(logits.grad), "labels": corn_label_from_logits(logits).tolist(),
            "reversed": numbers(domain[0].weight.grad, domain[2].weight.grad)}
