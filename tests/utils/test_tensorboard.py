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
    for name in ("autograd_nb.utils.tensorboard", "autograd_nb.utils.tensorboard.writer"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ImportError, match=r"pip install tensorboard \(or \"autograd_nb\[tensorboard\]\"\)"):
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
        writer.add_embedding(torch.eye(3), metadata=["x", "y", "z"], tag="words")
        with pytest.raises(ValueError, match="2 labels for 3 vectors"):
            writer.add_embedding(torch.eye(3), metadata=["x", "y"])
    read = EventAccumulator(str(tmp_path / "run"), size_guidance={"images": 0, "scalars": 0})
    read.Reload()
    assert [(e.step, round(e.value, 4)) for e in read.Scalars("loss")] == [(0, 1.0), (1, 0.5), (2, 0.3333)]
    assert read.Histograms("weights")[0].histogram_value.num == 10
    assert (read.Images("picture")[0].height, read.Images("picture")[0].width) == (4, 5)
    assert set(read.Tags()["tensors"]) >= {"note/text_summary"}
    assert (tmp_path / "run" / "00000" / "words" / "metadata.tsv").read_text() == "x\ny\nz\n"
    assert 'tensor_path: "00000/words/tensors.tsv"' in (tmp_path / "run" / "projector_config.pbtxt").read_text()


class Net(torch.nn.Module):
    """Modules in modules, one of which is called twice; a recurrent one; in-place ops, several results, a constant."""

    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(inplace=True), torch.nn.Dropout())
        self.rnn = torch.nn.GRU(3, 4)
        self.parts = torch.nn.ModuleDict({"head": torch.nn.Linear(4, 2)})

    def forward(self, x):
        x = self.trunk(self.trunk(x))
        y, _ = self.rnn(x)
        best, at = self.parts["head"](y[-1]).max(1)
        return best + torch.ones(2), at


def read_graph(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(folder))
    read.Reload()
    return {node.name: node for node in read.Graph().node}


@pytest.mark.filterwarnings("ignore")
def test_a_graph_is_read_back(tmp_path, capsys):
    pytest.importorskip("tensorboard", reason="needs the package tensorboard (the extra tensorboard)")
    from autograd_nb.utils.tensorboard import SummaryWriter

    net = Net()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(net, torch.ones(5, 2, 3), verbose=True)
        with pytest.raises(ValueError, match="input_to_model is missing"):
            writer.add_graph(net)
    assert net.training and net.trunk[2].training
    nodes = read_graph(tmp_path)
    assert 'name: "Net/trunk/0/linear_1"' in capsys.readouterr().out
    sources = {i.partition(":")[0] for node in nodes.values() for i in node.input}
    assert sources <= nodes.keys()
    assert {n for n in nodes if n not in sources} == {"output", "output_1"}
    assert list(nodes["Net/trunk/0/linear"].input) == ["input", "Net/trunk/0/weight", "Net/trunk/0/bias"]
    (first,) = nodes["Net/trunk/1/relu_"].input if "Net/trunk/1/relu_" in nodes else nodes["Net/trunk/1/relu"].input
    assert first == "Net/trunk/0/linear"
    assert nodes["Net/rnn/GRU"].op == "GRU" and "Net/rnn/weight_ih_l0" in nodes["Net/rnn/GRU"].input
    assert list(nodes["output_1"].input) == ["Net/max:1"] and "Net/max" in nodes["Net/add"].input
    shapes = nodes["Net/parts/head/linear"].attr["_output_shapes"].list.shape
    assert [[d.size for d in shape.dim] for shape in shapes] == [[2, 2]]
    assert {n for n, node in nodes.items() if node.op == "Parameter"} >= {f"Net/{p.replace('.', '/')}" for p, _ in net.named_parameters()}


@pytest.mark.filterwarnings("ignore")
def test_a_graph_of_a_function_is_read_back(tmp_path):
    pytest.importorskip("tensorboard", reason="needs the package tensorboard (the extra tensorboard)")
    from autograd_nb.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(lambda a, b: (a * b).sum(), (torch.ones(2), torch.ones(2)))
    product = next(node for node in read_graph(tmp_path).values() if node.op == "mul")
    assert list(product.input) == ["input", "input_1"]


@pytest.mark.filterwarnings("ignore")
def test_the_table_of_hyperparameters_is_read_back(tmp_path):
    """By TensorBoard's own plugin, as its page asks it."""
    pytest.importorskip("tensorboard", reason="needs the package tensorboard (the extra tensorboard)")
    from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
    from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
    from tensorboard.context import RequestContext
    from tensorboard.plugins.base_plugin import TBContext
    from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups

    from autograd_nb.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        for i, lr in enumerate((0.1, 0.01)):
            row = {"lr": torch.tensor(lr), "layers": 2, "optimizer": "Adam", "amsgrad": i == 0}
            writer.add_hparams(row, {"accuracy": 0.9 - i, "loss": torch.tensor(0.5)}, {"layers": [1, 2]}, run_name=f"try{i}", global_step=3)
        for values, message in (({"lr": [1], "layers": 1}, "'lr' must be a number"), ({"lr": 0.1}, "names 'layers', which is none of lr")):
            with pytest.raises(ValueError, match=message):
                writer.add_hparams(values, {}, {"layers": [1]})
        with pytest.raises(TypeError, match="should be dictionary"):
            writer.add_hparams([1], {})
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(tmp_path))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(tmp_path))
    context = backend_context.Context(TBContext(multiplexer=multiplexer, data_provider=provider, logdir=str(tmp_path)))
    request, asked = RequestContext(), api_pb2.ListSessionGroupsRequest(start_index=0, slice_size=10)
    experiment = context.experiment_from_metadata(
        request, "", True, context.hparams_metadata(request, ""), context.hparams_from_data_provider(request, "", 100)
    )
    assert [tuple(i.domain_discrete) and list(i.domain_discrete) for i in experiment.hparam_infos if i.name == "layers"] == [[1.0, 2.0]]
    asked.allowed_statuses.extend([api_pb2.STATUS_SUCCESS])
    asked.col_params.extend([api_pb2.ColParams(metric=api_pb2.MetricName(tag="accuracy"), order=api_pb2.ORDER_ASC)])
    groups = list_session_groups.Handler(request, context, "", asked).run().session_groups
    found = [{k: v.number_value or v.string_value or v.bool_value for k, v in g.hparams.items()} for g in groups]
    assert [round(f["lr"], 4) for f in found] == [0.01, 0.1]
    assert [(f["layers"], f["optimizer"], f["amsgrad"]) for f in found] == [(2.0, "Adam", False), (2.0, "Adam", True)]
    values = {m.name.tag: (round(m.value, 4), m.training_step) for m in groups[1].metric_values}
    assert values == {"accuracy": (0.9, 3), "loss": (0.5, 3)}


def _drawable() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


@pytest.mark.filterwarnings("ignore")
def test_hyperparameters_are_summaries_that_a_file_takes(tmp_path):
    """As PyTorch Lightning's logger writes them."""
    pytest.importorskip("tensorboard", reason="needs the package tensorboard (the extra tensorboard)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from autograd_nb.utils.tensorboard import SummaryWriter
    from autograd_nb.utils.tensorboard.summary import hparams

    with SummaryWriter(tmp_path) as writer:
        file = writer._get_file_writer()
        for summary in hparams({"lr": torch.tensor(0.5), "kind": "adam"}, {"loss": 1.0}):
            file.add_summary(summary, 2)
        assert file.get_logdir() == writer.get_logdir() == str(tmp_path)
    read = EventAccumulator(str(tmp_path)).Reload()
    assert sorted(read.PluginTagToContent("hparams")) == [f"_hparams_/{name}" for name in ("experiment", "session_end_info", "session_start_info")]
    with pytest.raises(TypeError, match="should be dictionary"):
        hparams([], {})
