"""Losses, miners and accuracies of embeddings."""

from pytorch_metric_learning import distances, losses, miners, reducers, testers
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

from ..helpers import data, integers, numbers


def run():
    labels, result = integers(4, 16), {}
    for loss in (losses.TripletMarginLoss(), losses.ContrastiveLoss(), losses.NTXentLoss(), losses.MultiSimilarityLoss(), losses.CircleLoss(),
                 losses.SupConLoss(), losses.LiftedStructureLoss(), losses.NPairsLoss(), losses.AngularLoss(), losses.FastAPLoss()):
        x = data(16, 8).requires_grad_()
        value = loss(x, labels)
        value.backward()
        result[type(loss).__name__] = numbers(value, x.grad)
    x = data(16, 8)
    pairs = miners.MultiSimilarityMiner()(x, labels)
    hard = miners.TripletMarginMiner(margin=0.2, type_of_triplets="semihard")(x, labels)
    result["mined"] = [float(part.sum()) for part in (*pairs, *hard)]
    result["distances"] = numbers(distances.CosineSimilarity()(x), distances.LpDistance(power=2)(x), distances.SNRDistance()(x))
    arc = losses.ArcFaceLoss(4, 8)
    arc.W.data = data(8, 4, seed=3)
    result["arc"] = numbers(arc(x, labels))
    return result
