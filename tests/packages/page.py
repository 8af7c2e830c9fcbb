"""Writes docs/packages.md from the outcomes of the exam."""

import ast
import importlib.metadata
import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "packages.md"
HEAD = """# Packages that were written for PyTorch

Programs of these packages, as they are published, run with this library as their `torch`, in an environment without PyTorch. Each use trains, fits
or computes something, and its numbers are compared with those that PyTorch 2.13 gave. `make test-packages` runs them; the uses are in
`tests/packages/uses/`. This page is written by `make test-packages ARGS=--page`.

| package | version | what is run | outcome |
|---|---|---|---|
"""

TAIL = """
## Programs

Scripts and models of these repositories, as they are, run with PyTorch and with this library as their `torch`, with data that NumPy draws. The losses of
the first two to six steps agree to 10⁻⁴ (most to 10⁻⁶). `python -m tests.packages.programs SCRIPT [ARGUMENTS …]` runs one so in both libraries.

- pytorch/examples: mnist, mnist_rnn, vae, dcgan, regression, word_language_model (LSTM, GRU, RNN_TANH, Transformer), reinforcement_learning
  (reinforce, actor_critic)
- karpathy: minGPT's adder, nanoGPT's train.py (eager), makemore (transformer, bigram, mlp, rnn, gru, bow)
- yunjey/pytorch-tutorial: linear and logistic regression, feedforward, convolutional, recurrent and bidirectional networks, variational autoencoder
- jcjohnson/pytorch-examples: two-layer nets by autograd, nn, a module, optim and a custom function; the dynamic net
- eriklindernoren/PyTorch-GAN: gan, acgan, infogan, lsgan, relativistic_gan, wgan, wgan_gp
- graykode/nlp-tutorial: NNLM, Word2Vec, TextCNN, TextRNN, TextLSTM, Bi-LSTM, Seq2Seq, attention (with PYTHONHASHSEED=0, as they number a set of words)
- hunkim/PyTorchZeroToAll: gradients, linear and logistic regression, three recurrent networks; MorvanZhou/PyTorch-Tutorial (regression, saving, RNN, GAN)
- lucidrains: 29 models of vit-pytorch, 20 kinds of decoders of x-transformers with generation, denoising-diffusion-pytorch in one and two dims with samples
- labmlai/annotated_deep_learning_paper_implementations: 24 layers and models (attention free, Switch, normalizations, recurrent highway, HyperLSTM, capsules,
  ResNet, ConvMixer, graph attention, LoRA, PonderNet, DQN) and 7 optimizers
- Models of these, with a step of training around them, eager and by `torch.compile`, losses and gradients compared: rixwew/pytorch-fm (17),
  thuml/Time-Series-Library (Autoformer, DLinear, FEDformer, FiLM, FreTS, LightTS, SCINet, SegRNN, TSMixer, TiDE, TimeFilter, TimeMixer, TimesNet),
  AntixK/PyTorch-VAE (17), EugenHotaj/pytorch-generative (9), kuangliu/pytorch-cifar, rasbt/LLMs-from-scratch (GPT, Llama 3, Qwen 3), locuslab/TCN (6),
  ikostrikov/pytorch-flows (6), karpathy/pytorch-normalizing-flows (7), vsitzmann/siren (4), adambielski/siamese-triplet (6)
- and of: dragen1860/MAML-Pytorch, gabrielhuang/reptile-pytorch, tanelp/tiny-diffusion, cloneofsimo/minDiffusion, tkipf/pygcn, Diego999/pyGAT,
  zfjsail/gae-pytorch, greydanus/hamiltonian-nn, higgsfield/Capsule-Network-Tutorial, jayroxis/PINNs, yenchenlin/nerf-pytorch, HobbitLong/SupContrast,
  davda54/sam, g1910/HyperNetworks, johnma2006/mamba-minimal, karpathy/llama2.c, codertimo/BERT-pytorch, hyunwoongko/transformer, Blealtan/efficient-kan,
  jadore801120/attention-is-all-you-need-pytorch, ndrplz/ConvLSTM_pytorch, milesial/Pytorch-UNet, state-spaces/s4 (S4D), openai/spinningup
"""


def distributions(name: str) -> list[str]:
    """Return the packages that a use imports and that requirements.txt names."""
    tree = ast.parse((HERE / "uses" / f"{name}.py").read_text())
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0}
    known = importlib.metadata.packages_distributions()
    found = {known[top][0] for top in {module.partition(".")[0] for module in modules} if top in known}
    return sorted(found - {"torch", "numpy", "autograd_nb"})


def write(outcomes: dict[str, str]) -> None:
    """Write the page: a line for each use, with the versions that are installed."""
    lines = []
    for name, outcome in outcomes.items():
        packages = distributions(name)
        what = ast.get_docstring(ast.parse((HERE / "uses" / f"{name}.py").read_text())) or ""
        versions = ", ".join(importlib.metadata.version(package) for package in packages)
        shown = re.sub(r"/\S*/", "", outcome).replace("|", "\\|")[:160]
        lines.append(f"| {', '.join(packages)} | {versions} | {what.splitlines()[0].rstrip('.')} | {shown} |")
    good = sum(outcome == "the same" for outcome in outcomes.values())
    PAGE.write_text(HEAD + "\n".join(lines) + f"\n\n{good} of {len(outcomes)} uses give PyTorch's numbers.\n" + TAIL)
