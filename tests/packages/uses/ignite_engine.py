"""A training loop of engines, events and metrics."""

import torch
from ignite.contrib.handlers import ProgressBar
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, ModelCheckpoint, PiecewiseLinear
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, Precision, Recall
from torch.utils.data import DataLoader, TensorDataset

from ..helpers import data, fill, integers


def run():
    loader = DataLoader(TensorDataset(data(32, 6), integers(3, 32)), batch_size=8)
    net = fill(torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3)), scale=0.3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    trainer = create_supervised_trainer(net, optimizer, torch.nn.CrossEntropyLoss())
    matrix = ConfusionMatrix(num_classes=3)
    evaluator = create_supervised_evaluator(net, metrics={
        "accuracy": Accuracy(), "loss": Loss(torch.nn.functional.cross_entropy), "precision": Precision(average=True), "recall": Recall(), "matrix": matrix})
    losses, scores = [], []
    trainer.add_event_handler(Events.ITERATION_STARTED, PiecewiseLinear(optimizer, "lr", [(0, 0.1), (8, 0.01)]))

    @trainer.on(Events.ITERATION_COMPLETED(every=2))
    def note(engine):
        losses.append(engine.state.output)

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluator.run(loader)
        scores.extend([evaluator.state.metrics[name] for name in ("accuracy", "loss", "precision")])

    trainer.run(loader, max_epochs=3)
    return {"losses": losses, "scores": scores, "recall": evaluator.state.metrics["recall"].tolist(),
            "matrix": evaluator.state.metrics["matrix"].flatten().tolist(), "steps": [trainer.state.iteration, trainer.state.epoch]}
