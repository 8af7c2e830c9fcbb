"""Mixtures, hidden Markov models and classifiers (pomegranate), k-means, a random field, invertible blocks (FrEIA), Fourier transforms off a grid, piqa."""

import FrEIA.framework as Ff
import FrEIA.modules as Fm
import torch
from fast_pytorch_kmeans import KMeans
from piqa import GMSD, MDSI, PSNR, SSIM, HaarPSI
from pomegranate.bayes_classifier import BayesClassifier
from pomegranate.distributions import Exponential, Normal
from pomegranate.gmm import GeneralMixtureModel
from pomegranate.hmm import DenseHMM
from pomegranate.markov_chain import MarkovChain
from torch import nn
from torch_complex.tensor import ComplexTensor
from TorchCRF import CRF
from torchkbnufft import KbNufft, KbNufftAdjoint

from ..helpers import data, fill, integers, numbers, train


def mixture():
    x = data(30, 2)
    parts = [Normal(torch.tensor([m, 0.0]), torch.eye(2)) for m in (-1.0, 1.0)]
    model = GeneralMixtureModel(parts, max_iter=3).fit(x)
    return numbers(model.log_probability(x), model.distributions[0].means, model.distributions[1].covs, model.predict_proba(x))


def markov():
    x = data(3, 10, 2)
    states = [Normal([m, 0.0], [1.0, 1.0], covariance_type="diag") for m in (-1.0, 1.0)]
    model = DenseHMM(states, edges=[[0.8, 0.2], [0.3, 0.7]], starts=[0.5, 0.5], ends=[0.1, 0.1], max_iter=2).fit(x)
    chain = MarkovChain(k=1)
    walks = integers(3, 10, 6, 1)
    chain.fit(walks)
    return numbers(model.log_probability(x), model.predict_proba(x), model.distributions[0].means, chain.log_probability(walks))


def classes():
    x = data(30, 2).abs() + 0.1
    model = BayesClassifier([Exponential([0.5, 1.0]), Exponential([1.0, 2.0])]).fit(x, torch.tensor([0, 1] * 15))
    means = KMeans(n_clusters=3, mode="euclidean", max_iter=5)
    labels = means.fit_predict(x, centroids=x[:3].clone())
    return numbers(model.predict_proba(x), model.distributions[0].scales, labels.float(), means.centroids)


def invertible():
    def between(n_in, n_out):
        return nn.Sequential(nn.Linear(n_in, 8), nn.ReLU(), nn.Linear(8, n_out))

    network = Ff.SequenceINN(4)
    for block in (Fm.GLOWCouplingBlock, Fm.RNVPCouplingBlock, Fm.NICECouplingBlock):
        network.append(block, subnet_constructor=between)
        network.append(Fm.ActNorm)
    fill(network)
    x = data(8, 4)

    def loss():
        z, jacobian = network(x)
        return 0.5 * z.pow(2).sum(1).mean() - jacobian.mean()

    losses = train(network, loss, lr=0.01)
    back, _ = network(network(x)[0], rev=True)
    return losses + numbers(back)


def field():
    crf, network = CRF(3), nn.Linear(4, 3)
    both, x, y = fill(nn.ModuleList([crf, network])), data(2, 5, 4), integers(3, 2, 5)
    mask = torch.ones(2, 5, dtype=torch.bool)
    losses = train(both, lambda: -crf(network(x), y, mask).mean())
    return losses + [float(label) for path in crf.viterbi_decode(network(x), mask) for label in path]


def off_grid():
    image, places = data(1, 1, 16, 16).requires_grad_(), data(2, 20, seed=1).clamp(-3, 3)
    there, back = KbNufft(im_size=(16, 16)), KbNufftAdjoint(im_size=(16, 16))
    found = there(torch.complex(image, image * 0.5), places)
    (found.abs().pow(2).mean() + back(found, places).abs().mean()).backward()
    return numbers(found, image.grad)


def measured():
    found = []
    for measure in (SSIM(), PSNR(), GMSD(), MDSI(), HaarPSI()):
        x = data(2, 3, 48, 48).sigmoid().requires_grad_()
        value = measure(x, data(2, 3, 48, 48, seed=1).sigmoid())
        value.backward()
        found += numbers(value, x.grad)
    return found


def complex_pairs():
    a, b = data(3, 3).requires_grad_(), data(3, 3, seed=1).requires_grad_()
    found = (ComplexTensor(a, b) @ ComplexTensor(b, a).conj().transpose(0, 1)).abs().sum()
    found.backward()
    return numbers(found, a.grad, b.grad)


def run():
    return {
        "mixture": mixture(), "markov": markov(), "classes": classes(), "invertible": invertible(), "field": field(), "off_grid": off_grid(),
        "measured": measured(), "complex_pairs": complex_pairs(),
    }  # fmt: skip
