"""A network as an estimator of scikit-learn: fitted, cross-validated, in a pipeline."""

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EpochScoring, LRScheduler

from ..helpers import fill


class Net(torch.nn.Module):
    def __init__(self, width=8, out=2):
        super().__init__()
        self.layers = fill(torch.nn.Sequential(torch.nn.Linear(5, width), torch.nn.ReLU(), torch.nn.Linear(width, out)), scale=0.4)

    def forward(self, x):
        return self.layers(x)


def run():
    generator = np.random.default_rng(0)
    x = generator.standard_normal((40, 5)).astype(np.float32)
    y = (x[:, 0] > x[:, 1]).astype(np.int64)
    options = {"max_epochs": 4, "lr": 0.1, "batch_size": 16, "verbose": 0, "train_split": None, "iterator_train__shuffle": False}
    net = NeuralNetClassifier(Net, criterion=torch.nn.CrossEntropyLoss, optimizer=torch.optim.SGD, optimizer__momentum=0.9,
                              callbacks=[LRScheduler("StepLR", step_size=2), EpochScoring("accuracy", on_train=True, name="acc")], **options)
    net.fit(x, y)
    pipe = make_pipeline(StandardScaler(), NeuralNetClassifier(Net, criterion=torch.nn.CrossEntropyLoss, **options)).fit(x, y)
    search = GridSearchCV(NeuralNetClassifier(Net, criterion=torch.nn.CrossEntropyLoss, **options), {"lr": [0.01, 0.2]}, cv=2, scoring="accuracy").fit(x, y)
    regressor = NeuralNetRegressor(Net, module__out=1, **options).fit(x, x[:, :1] * 2)
    return {"losses": net.history[:, "train_loss"], "accuracies": net.history[:, "acc"], "probabilities": net.predict_proba(x)[:4].ravel(),
            "pipeline": pipe.predict_proba(x)[:2].ravel(), "search": [search.best_params_["lr"], search.best_score_],
            "regression": regressor.predict(x)[:4].ravel()}
