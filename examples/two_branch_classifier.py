"""Two questions about one picture: a shared trunk of convolutions with two heads, and two ways to run the backward pass.

The pictures are scikit-learn's handwritten digits (1,797 of 8×8 pixels); the questions are "is it even?" and "is it 5 or
more?". Each head has its own loss, and both losses reach the shared trunk:

    --backward joint        (loss_even + loss_big).backward()
    --backward sequential   loss_even.backward(retain_graph=True); loss_big.backward()

Both give the same gradients, which the program checks on its first batch. The first pass of `sequential` must keep the
graph, as the second one needs the trunk's part of it again; --show-error shows what happens otherwise.

    python examples/two_branch_classifier.py --out out
    python examples/two_branch_classifier.py --out out --tensorboard   (in another terminal: tensorboard --logdir out/runs)
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import save
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from tqdm import tqdm

    if find_spec("matplotlib") is None:  # which the first picture imports: a training's first steps are sooner without it
        raise ModuleNotFoundError(name="matplotlib")
except ModuleNotFoundError as missing:
    sys.exit(f"This example needs the package {missing.name!r}: pip install 'autograd_nb[examples]'")

import autograd_nb as torch
import autograd_nb.nn.functional as F
from autograd_nb import nn, optim

QUESTIONS = (("even", "odd"), ("5 or more", "below 5"))  # what a logit above and below 0 means
HEADS = ("even", "big")
WEIGHTS, CHECKPOINT = "two_branch.safetensors", "checkpoint.safetensors"
CURVES, PICTURE, TABLE = "two_branch_loss.png", "two_branch.png", "two_branch_loss.csv"


class TwoBranches(nn.Module):
    """Images (N, 1, 8, 8) -> two logits, each (N, 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(),
        )  # fmt: skip
        self.even = self.head()
        self.big = self.head()

    @staticmethod
    def head() -> nn.Sequential:
        return nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, images):
        features = self.trunk(images)
        return self.even(features), self.big(features)


# ------------------------------------------------------------------------------------------------------------ data


def load():
    """(training images, answers), (held-out images, answers): images (N, 1, 8, 8) in 0..1, answers (2, N, 1) of 0 and 1."""
    digits = load_digits()
    parts = train_test_split(digits.images, digits.target, test_size=0.2, stratify=digits.target, random_state=0)
    images = [torch.from_numpy((part[:, None] / 16).astype(np.float32)) for part in parts[:2]]
    answers = [torch.from_numpy(np.stack([part % 2 == 0, part >= 5])[:, :, None].astype(np.float32)) for part in parts[2:]]
    return list(zip(images, answers, strict=True))


def widen(images):
    """The images with an empty column on either side, between which `shifted` moves them."""
    n, c, h, w = images.shape
    wide = torch.zeros(n, c, h, w + 2)
    wide[:, :, :, 1:-1] = images
    return wide


def shifted(wide, width: int = 8):
    """The widened images moved sideways by up to one pixel, the whole batch alike (up and down they fill their frame)."""
    left = int(torch.randperm(3)[0].item())
    return wide[:, :, :, left : left + width]


# -------------------------------------------------------------------------------------------------------- training


def losses(model, images, answers):
    return [F.binary_cross_entropy_with_logits(logits, answers[i]) for i, logits in enumerate(model(images))]


def backward(way: str, even, big, *, keep: bool = False) -> None:
    """Both losses' gradients into ``.grad`` of the parameters; ``keep`` leaves the graph usable."""
    if way == "joint":
        (even + big).backward(retain_graph=keep)
    else:
        even.backward(retain_graph=True)  # the trunk's part of the graph is needed once more
        big.backward(retain_graph=keep)


def largest_difference(model, images, answers) -> float:
    """By how much the gradients of the two ways differ at most."""
    both = losses(model, images, answers)
    gradients = []
    for way, keep in (("joint", True), ("sequential", False)):
        model.zero_grad()
        backward(way, *both, keep=keep)
        gradients.append([p.grad for p in model.parameters()])
    model.zero_grad()
    return max((a - b).abs().max().item() for a, b in zip(*gradients, strict=True))


def show_error(model, images, answers) -> None:
    """Run the second backward over a graph that the first has consumed, and print what is said about it."""
    even, big = losses(model, images, answers)
    even.backward()
    try:
        big.backward()
    except RuntimeError as error:
        print(f"even.backward() without retain_graph=True, then big.backward():\n\n{type(error).__name__}: {error}")
    else:
        sys.exit("expected an error: the trunk's part of the graph was used twice")


def correct(logits, answers):
    """Which answers are right, as 0 and 1."""
    return (logits > 0).float().eq(answers).float()


def accuracy(model, images, answers) -> list[float]:
    model.eval()
    with torch.no_grad():
        right = [correct(logits, answers[i]).mean().item() for i, logits in enumerate(model(images))]
    model.train()
    return right


class Training:
    """The model, its optimizer and how far they are: what a checkpoint holds.

    The random numbers of a step follow from the seed and the number of the step alone, and its learning rate from that number
    and --epochs, so a run that was stopped and resumed gives the same numbers as one that was not.
    """

    def __init__(self, args: argparse.Namespace, writer=None) -> None:
        torch.manual_seed(args.seed)
        self.args, self.writer = args, writer
        self.model = TwoBranches()
        self.optimizer = optim.Adam(self.model.parameters(), lr=args.lr)
        self.step = 0
        self.history: dict[str, list] = {"loss": [], "accuracy": []}  # of each step, and held out after each epoch

    def run(self, train, test, stop: Stop) -> bool:
        """Train to the last epoch; False if stopped before."""
        args, model, optimizer = self.args, self.model, self.optimizer
        images, answers = train
        wide, n = widen(images), images.shape[0]
        size = min(args.batch_size, n)
        steps = n // size  # the rest of each epoch's shuffle is left out, so that all batches are of one size
        order = None
        bar = tqdm(total=args.epochs * steps, initial=self.step, unit="step", disable=None, dynamic_ncols=True)
        with bar:
            while self.step < args.epochs * steps:
                epoch, i = divmod(self.step, steps)
                if i == 0 or order is None:
                    torch.manual_seed(args.seed + 1_000_003 * (epoch + 1))
                    order = torch.randperm(n)
                torch.manual_seed(args.seed + 1_000_003 * (epoch + 1) + i + 1)
                for group in optimizer.param_groups:  # even for the first half, then down to 0
                    group["lr"] = args.lr * min(1.0, 2 - 2 * self.step / (args.epochs * steps))
                index = order[i * size : (i + 1) * size]
                batch, wanted = shifted(wide[index]), answers[:, index]

                logits = model(batch)
                even, big = (F.binary_cross_entropy_with_logits(logit, wanted[j]) for j, logit in enumerate(logits))
                optimizer.zero_grad()
                backward(args.backward, even, big)
                optimizer.step()

                self.step += 1
                self.history["loss"].append([even.item(), big.item()])
                if self.writer:
                    self.writer.add_scalars("loss", dict(zip(HEADS, self.history["loss"][-1], strict=True)), self.step)
                if not bar.disable:
                    share = [correct(logit.detach(), wanted[j]).mean().item() for j, logit in enumerate(logits)]
                    bar.set_postfix_str(f"loss {even.item():.3f} {big.item():.3f}, accuracy {share[0]:.0%} {share[1]:.0%}")
                    bar.update()
                if self.step % steps == 0:
                    self.history["accuracy"].append(accuracy(model, *test))
                    mean = np.mean(self.history["loss"][-steps:], axis=0)
                    held_out = " and ".join(f"{a:.1%}" for a in self.history["accuracy"][-1])
                    tqdm.write(f"epoch {epoch + 1:2}: loss {mean[0]:.4f} {mean[1]:.4f}, held-out accuracy {held_out}")
                    if self.writer:
                        self.writer.add_scalars("accuracy", dict(zip(HEADS, self.history["accuracy"][-1], strict=True)), self.step)
                        for name, p in model.named_parameters():
                            self.writer.add_histogram(f"gradients/{name}", p.grad, self.step)
                    self.save()
                if stop.asked:
                    return False
        return True

    def save(self) -> None:
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        state = self.optimizer.state_dict()["state"]
        tensors |= {f"optimizer.{i}.{name}": value for i, one in state.items() for name, value in one.items()}
        facts = {"step": self.step, "history": self.history, "seed": self.args.seed, "batch_size": self.args.batch_size}
        save_tensors(self.args.out / CHECKPOINT, tensors, facts)

    def resume(self) -> None:
        path = self.args.out / CHECKPOINT
        if not path.exists():
            sys.exit(f"Nothing to resume: there is no {path}")
        with safe_open(path, framework="np") as file:
            facts = json.loads(file.metadata()["facts"])
            tensors = {name: torch.from_numpy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 (not a dict)
        for name in ("seed", "batch_size"):
            if facts[name] != getattr(self.args, name):
                sys.exit(f"{path} was made with --{name.replace('_', '-')} {facts[name]}: give the same to resume it")
        self.step, self.history = facts["step"], facts["history"]
        self.model.load_state_dict({name[6:]: value for name, value in tensors.items() if name.startswith("model.")})
        state: dict[int, dict] = {}
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, i, key = name.split(".", 2)
                state.setdefault(int(i), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})


class Stop:
    """Ctrl-C asks to stop after the step that is running, so that no half-updated weights are saved; a second one insists."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Stop:
        self.before = signal.signal(signal.SIGINT, self.ask)
        return self

    def __exit__(self, *exc: object) -> None:
        signal.signal(signal.SIGINT, self.before)

    def ask(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        tqdm.write("Stopping after this step; Ctrl-C again to stop at once.", file=sys.stderr)


# ---------------------------------------------------------------------------------------------------------- output


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``path`` once it is complete; a killed program leaves the old file whole."""
    part = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def save_tensors(path: Path, tensors: dict, facts: dict) -> None:
    arrays = {name: np.array(value.detach().numpy(), order="C") for name, value in tensors.items()}
    with replacing(path) as part:
        part.write_bytes(save(arrays, metadata={"facts": json.dumps(facts)}))


def event_writer(folder: Path):
    """What TensorBoard reads."""
    try:
        from autograd_nb.utils.tensorboard import SummaryWriter
    except ImportError as missing:
        sys.exit(str(missing))
    return SummaryWriter(folder)


def write_table(path: Path, history: dict) -> None:
    """The losses of each step as CSV, for spreadsheets and pandas."""
    with replacing(path) as part, part.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("step", *HEADS))
        table.writerows((i, *both) for i, both in enumerate(history["loss"], 1))


def subplots(rows: int, columns: int, **how):
    """A figure for a file, which needs no display, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(**how)
    return figure, figure.subplots(rows, columns)


def draw_curves(path: Path, history: dict) -> None:
    loss, right = np.array(history["loss"]), np.array(history["accuracy"])
    figure, (left_axes, right_axes) = subplots(1, 2, figsize=(10, 4), layout="constrained")
    width = min(20, len(loss))
    for i, (yes, _) in enumerate(QUESTIONS):
        mean = np.convolve(loss[:, i], np.ones(width) / width, mode="valid")
        left_axes.plot(loss[:, i], color=f"C{i}", alpha=0.25, linewidth=0.8)
        left_axes.plot(np.arange(width - 1, len(loss)), mean, color=f"C{i}", label=f"{yes}?")
        if len(right):
            right_axes.plot(np.arange(1, len(right) + 1), right[:, i], ".-", color=f"C{i}", label=f"{yes}?")
    left_axes.set(title="training loss (thick: mean of 20 steps)", xlabel="step", yscale="log")
    right_axes.set(title="held-out accuracy", xlabel="epoch")
    left_axes.legend()
    if len(right):
        right_axes.legend()
        right_axes.xaxis.get_major_locator().set_params(integer=True)
    with replacing(path) as part:
        figure.savefig(part, format="png", dpi=120)


def draw_answers(path: Path, model, images, answers, rows: int = 4, columns: int = 8) -> None:
    """A grid of held-out images with both answers and how sure the network is of them; wrong answers in red."""
    count = rows * columns
    model.eval()
    with torch.no_grad():
        sure = [logits.sigmoid().numpy()[:, 0] for logits in model(images[:count])]
    figure, axes = subplots(rows, columns, figsize=(1.5 * columns, 2 * rows))
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.93, wspace=0.05, hspace=0.45)
    for i, one in enumerate(axes.flat):
        one.imshow(images[i, 0].numpy(), cmap="gray_r", interpolation="nearest")
        one.set_axis_off()
        for j, (yes, no) in enumerate(QUESTIONS):
            p = float(sure[j][i])
            right = (p > 0.5) == bool(answers[j, i, 0].item())
            text = f"{yes if p > 0.5 else no} {100 * max(p, 1 - p):.0f}%"
            one.text(0.5, 1.16 - 0.14 * j, text, transform=one.transAxes, ha="center", va="bottom", fontsize=9,
                     color="black" if right else "red")  # fmt: skip
    with replacing(path) as part:
        figure.savefig(part, format="png", dpi=100)


# ------------------------------------------------------------------------------------------------------------ main


def positive(kind):
    def read(text: str):
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value

    read.__name__ = f"positive {kind.__name__}"  # argparse names it in its message
    return read


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--backward", choices=("joint", "sequential"), default="joint", help="how the two losses are run backward (joint)")
    add("--show-error", action="store_true", help="run sequentially without retain_graph=True, print the error and stop")
    add("--epochs", type=positive(int), default=12, metavar="N", help="(12)")
    add("--batch-size", type=positive(int), default=32, metavar="N", help="(32)")
    add("--lr", type=positive(float), default=4e-3, metavar="RATE", help="learning rate of Adam (0.004)")
    add("--seed", type=int, default=0, metavar="N", help="same seed, same numbers (0)")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="where weights and pictures are written (out)")
    add("--tensorboard", action="store_true", help="write events for TensorBoard to DIR/runs")
    add("--resume", action="store_true", help=f"go on from DIR/{CHECKPOINT}")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    began = time.perf_counter()
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"Cannot write to {args.out}: {error.strerror}")

    train, test = load()
    writer = event_writer(args.out / "runs") if args.tensorboard else None
    work = Training(args, writer)
    first = train[0][: args.batch_size], train[1][:, : args.batch_size]
    if writer:
        writer.add_graph(work.model, first[0])
    if args.show_error:
        show_error(work.model, *first)
        return 0
    if args.resume:
        work.resume()
        print(f"resumed after step {work.step}")

    difference = largest_difference(work.model, *first)
    print(f"joint and sequential gradients differ by at most {difference:.1e} on the first batch")
    if not difference < 1e-4:
        sys.exit("that is more than rounding explains")

    with Stop() as stop:
        finished = work.run(train, test, stop)
    work.save()
    save_tensors(args.out / WEIGHTS, work.model.state_dict(), {"step": work.step})
    if not finished:
        print(f"Stopped after step {work.step}; go on with --resume --out {args.out}")
        return 130
    even, big = accuracy(work.model, *test)
    print(f"held-out accuracy: even? {even:.2%}, 5 or more? {big:.2%}")
    if writer:
        setting = {"lr": args.lr, "batch_size": args.batch_size, "backward": args.backward}
        writer.add_hparams(setting, {"accuracy/even": even, "accuracy/big": big}, run_name="setting")
        writer.close()
    write_table(args.out / TABLE, work.history)
    draw_curves(args.out / CURVES, work.history)
    draw_answers(args.out / PICTURE, work.model, *test)
    print(f"{args.out}/: {WEIGHTS}, {CURVES}, {PICTURE}, {TABLE}; {time.perf_counter() - began:.1f} s")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"Cannot write {error.filename}: {error.strerror}")
