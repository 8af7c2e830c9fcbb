"""`utils.tensorboard.SummaryWriter`, read back by the package tensorboard; without it, an error that says what to install."""

from __future__ import annotations

import importlib
import sys

import pytest

import autograd_nb as torch


def test_without_the_package_it_says_what_to_install(monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delitem(sys.modules, "autograd_nb.utils.tensorboard", raising=False)
    with pytest.raises(ImportError, match=r"pip install tensorboard \(or autograd_nb\[tensorboard\]\)"):
        importlib.import_module("autograd_nb.utils.tensorboard")


@pytest.mark.filterwarnings("ignore")
def test_what_is_written_is_read_back(tmp_path):
    pytest.importorskip("tensorboard", reason="needs the package tensorboard (the extra tensorboard)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from autograd_nb.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path / "run") as writer:
        for step in range(3):
            writer.add_scalar("loss", torch.tensor(1.0 / (step + 1)), step)
        writer.add_scalars("both", {"a": 1.0, "b": torch.tensor(2.0)}, 0)
        writer.add_histogram("weights", torch.arange(10.0), 1)
        writer.add_image("picture", torch.rand(3, 4, 5), 0)
        writer.add_images("pictures", torch.rand(2, 3, 4, 5), 0)
        writer.add_figure("figure", torch.viz.curves({"loss": [1.0, 0.5]}), 0, close=False) if _drawable() else None
        writer.add_text("note", "hello", 0)
        writer.add_graph(torch.nn.Linear(2, 3), torch.ones(1, 2))
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.9})
        writer.add_embedding(torch.eye(3), metadata=["x", "y", "z"], tag="words")
        with pytest.raises(ValueError, match="2 labels for 3 vectors"):
            writer.add_embedding(torch.eye(3), metadata=["x", "y"])
    read = EventAccumulator(str(tmp_path / "run"), size_guidance={"images": 0, "scalars": 0})
    read.Reload()
    assert [(e.step, round(e.value, 4)) for e in read.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, 0.3333)]
    assert read.Histograms("weights")[0].histogram_value.num == 10
    assert (read.Images("picture")[0].height, read.Images("picture")[0].width) == (4, 5)
    assert set(read.Tags()["tensors"]) >= {"note/text_summary", "graph/text_summary", "hparams/text_summary"}
    assert (tmp_path / "run" / "00000" / "words" / "metadata.tsv").read_text() == "x\ny\nz\n"
    assert 'tensor_path: "00000/words/tensors.tsv"' in (tmp_path / "run" / "projector_config.pbtxt").read_text()


def _drawable() -> bool:
    return importlib.util.find_spec("matplotlib") is not None
