"""Metrics of classes, of regressions, of images and of rankings, over several batches."""

import torch
import torchmetrics
from torchmetrics import MetricCollection
from torchmetrics.functional import pairwise_cosine_similarity
from torchmetrics.image import PeakSignalNoiseRatio, StructuralSimilarityIndexMeasure

from ..helpers import data, integers, numbers


def run():
    classes = MetricCollection({
        "accuracy": torchmetrics.Accuracy(task="multiclass", num_classes=4), "f1": torchmetrics.F1Score(task="multiclass", num_classes=4, average="macro"),
        "auroc": torchmetrics.AUROC(task="multiclass", num_classes=4), "confusion": torchmetrics.ConfusionMatrix(task="multiclass", num_classes=4),
        "calibration": torchmetrics.CalibrationError(task="multiclass", num_classes=4),
        "precision": torchmetrics.AveragePrecision(task="multiclass", num_classes=4)})
    regression = MetricCollection([torchmetrics.MeanSquaredError(), torchmetrics.R2Score(), torchmetrics.PearsonCorrCoef(), torchmetrics.SpearmanCorrCoef()])
    mean = torchmetrics.MeanMetric()
    for k in range(3):
        classes.update(data(30, 4, seed=k).softmax(1), integers(4, 30, seed=k))
        regression.update(data(30, seed=k), data(30, seed=k) + 0.3 * data(30, seed=9 + k))
        mean.update(data(4, seed=k), weight=torch.tensor([1.0, 2.0, 3.0, 4.0]))
    images = data(2, 3, 24, 24).sigmoid(), data(2, 3, 24, 24, seed=1).sigmoid()
    result = {name: numbers(value.float()) for name, value in {**classes.compute(), **regression.compute()}.items()}
    result["images"] = numbers(PeakSignalNoiseRatio(data_range=1.0)(*images), StructuralSimilarityIndexMeasure(data_range=1.0)(*images))
    result["others"] = numbers(mean.compute(), pairwise_cosine_similarity(data(4, 3), data(5, 3, seed=1)))
    classes.reset()
    return result
