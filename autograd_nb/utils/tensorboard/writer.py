"""``SummaryWriter``, writing event files through the tensorboard package, which must be installed.

Source: https://docs.pytorch.org/docs/stable/tensorboard.html
"""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

from ...tensor import Tensor

try:
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from ..hyperparameters import summaries
except ImportError:
    raise ImportError("autograd_nb.utils.tensorboard needs the tensorboard package: pip install tensorboard (or \"autograd_nb[tensorboard]\")") from None


def _number(value: Any) -> float:
    return float(value.item() if isinstance(value, Tensor) else value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) and value.numel() == 1 else value


def _array(value: Any) -> Any:
    import numpy as np

    return value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)


def hyperparameters(values: dict[str, Any], metrics: dict[str, Any], domains: dict[str, list[Any]] | None) -> dict[str, Any]:
    """Return tag -> what TensorBoard's table of hyperparameters reads under it. TypeError for arguments that are no dicts."""
    if not isinstance(values, dict) or not isinstance(metrics, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    return summaries({k: _plain(v) for k, v in values.items()}, list(metrics), domains or {})


class FileWriter:
    """Writes events and summaries, which others made, to the file of a `SummaryWriter`."""

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """Return the folder of the file."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an event, as of a step and a time (now)."""
        event.wall_time = walltime or event.wall_time or time.time()
        if step is not None:
            event.step = int(_number(step))
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a summary, as of a step and a time (now)."""
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write the events that wait into the file."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write the events that wait, and close the file."""
        self.event_writer.close()


class SummaryWriter:
    """Writes scalars, histograms, images, text, graphs and hyperparameters to event files in ``log_dir`` (runs/<time>_<host>)."""

    log_dir: str

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10, flush_secs: int = 120,
        filename_suffix: str = "",
    ):  # fmt: skip
        if not log_dir:
            log_dir = Path("runs") / f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}"
        self.log_dir = str(log_dir)
        self._writers: dict[str, Any] = {}
        self._options = (max_queue, flush_secs, filename_suffix)
        self._writer("")

    def _writer(self, folder: str) -> Any:
        if folder not in self._writers:
            self._writers[folder] = FileWriter(Path(self.log_dir) / folder if folder else self.log_dir, *self._options)
        return self._writers[folder]

    def _get_file_writer(self) -> FileWriter:
        return self._writer("")

    def get_logdir(self) -> str:
        """Return the folder of the files."""
        return self.log_dir

    def _add(self, value: Any, step: int | None, walltime: float | None, folder: str = "") -> None:
        self._writer(folder).add_summary(summary_pb2.Summary(value=[value]), step, walltime)

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None, new_style: bool = False,
        double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Write one number of a curve."""
        self._add(summary_pb2.Summary.Value(tag=tag, simple_value=_number(scalar_value)), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Write several numbers in one chart."""
        for tag, value in tag_scalar_dict.items():
            folder = f"{main_tag.replace('/', '_')}_{tag}"
            self._add(summary_pb2.Summary.Value(tag=main_tag, simple_value=_number(value)), global_step, walltime, folder)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = 64, walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Write how the values are spread."""
        import numpy as np

        v = _array(values).reshape(-1).astype(np.float64)
        if not v.size:
            raise ValueError(f"The input has no element (tag={tag!r})")
        counts, edges = np.histogram(v, bins=64 if isinstance(bins, str) else bins)
        proto = summary_pb2.HistogramProto(
            min=v.min(), max=v.max(), num=v.size, sum=v.sum(), sum_squares=float(v @ v),
            bucket_limit=[*edges[1:]], bucket=[*counts.astype(float)],
        )  # fmt: skip
        self._add(summary_pb2.Summary.Value(tag=tag, histo=proto), global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None, dataformats: str = "CHW"
    ) -> None:
        """Write one picture of values in [0, 1] or 0…255; needs Pillow."""
        import io

        import numpy as np
        from PIL import Image

        a = _array(img_tensor)
        if a.ndim != len(dataformats):
            raise ValueError(f"add_image(): a tensor of {a.ndim} dims for dataformats={dataformats!r}")
        a = a.transpose([dataformats.index(c) for c in "HWC" if c in dataformats])
        if a.dtype.kind == "f":
            a = (a * 255).clip(0, 255)
        a = a.astype(np.uint8)
        if a.ndim == 2:
            a = a[:, :, None]
        height, width, channels = a.shape
        picture = io.BytesIO()
        Image.fromarray(a[:, :, 0] if channels == 1 else a).save(picture, format="PNG")
        image = summary_pb2.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=picture.getvalue()
        )
        self._add(summary_pb2.Summary.Value(tag=tag, image=image), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None, dataformats: str = "NCHW"
    ) -> None:
        """Write several pictures, side by side."""
        import numpy as np

        a = _array(img_tensor)
        a = a.transpose([dataformats.index(c) for c in "NHWC"])
        self.add_image(tag, np.concatenate(list(a), axis=1), global_step, walltime, "HWC")

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Write a matplotlib figure as a picture."""
        import numpy as np
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        self.add_image(tag, np.asarray(canvas.buffer_rgba())[:, :, :3], global_step, walltime, "HWC")
        if close:
            import matplotlib.pyplot as plt

            plt.close(figure)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Write a text to the log."""
        meta = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"))
        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        tensor = TensorProto(dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape=shape)
        self._add(summary_pb2.Summary.Value(tag=f"{tag}/text_summary", metadata=meta, tensor=tensor), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any], hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None, global_step: int | None = None,
    ) -> None:  # fmt: skip
        """Write a row of the table of hyperparameters: a run of its own, ``run_name`` (the time), with these hyperparameters and results.

        hparam_domain_discrete: the values that a hyperparameter may have, by which the table is filtered.

        Errors: TypeError for arguments that are no dicts; ValueError for hyperparameters that are no number, str, bool or one of their domain.
        """
        folder = run_name or str(time.time())
        for tag, told in hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete).items():
            self._add(summary_pb2.Summary.Value(tag=tag, metadata=told), None, None, folder)
        for tag, value in metric_dict.items():
            self._add(summary_pb2.Summary.Value(tag=tag, simple_value=_number(value)), global_step, None, folder)

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        """Write the functions that a module, in eval mode, calls for an input: a box for each module, with shapes at the edges.

        Args:
            input_to_model: a tensor, or a tuple of the arguments. verbose: print the graph as well. use_strict_trace: without effect here.

        Errors: ValueError without an input.
        """
        if input_to_model is None:
            raise ValueError("add_graph(): input_to_model is missing; give a tensor, or a tuple of arguments, that the model takes")
        from ..event_graphs import graph_of

        graph = graph_of(model, input_to_model if isinstance(input_to_model, tuple) else (input_to_model,))
        if verbose:
            print(graph)
        self._writer("").add_event(event_pb2.Event(graph_def=graph.SerializeToString(), wall_time=time.time()))

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Any = None, tag: str = "default",
        metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Write vectors (N, D), with a label for each, for the projector; pictures (``label_img``) are refused."""
        if label_img is not None:
            raise NotImplementedError("add_embedding(): label_img is not written; give labels as metadata")
        vectors = _array(mat)
        labels = [] if metadata is None else list(metadata)
        if metadata is not None and len(labels) != len(vectors):
            raise ValueError(f"add_embedding(): {len(labels)} labels for {len(vectors)} vectors")
        folder = Path(self.log_dir) / f"{0 if global_step is None else int(global_step):05}" / tag
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tensors.tsv").write_text("".join("\t".join(map(str, row.tolist())) + "\n" for row in vectors))
        place = folder.relative_to(self.log_dir).as_posix()
        lines = ["embeddings {", f'  tensor_name: "{tag}:{folder.parent.name}"', f'  tensor_path: "{place}/tensors.tsv"']
        if labels:
            rows = ["\t".join(map(str, v)) if isinstance(v, (list, tuple)) else str(v) for v in labels]
            head = ["\t".join(metadata_header)] if metadata_header else []
            (folder / "metadata.tsv").write_text("\n".join([*head, *rows]) + "\n")
            lines.append(f'  metadata_path: "{place}/metadata.tsv"')
        with (Path(self.log_dir) / "projector_config.pbtxt").open("a") as file:
            file.write("\n".join([*lines, "}", ""]))

    def flush(self) -> None:
        """Write what is pending."""
        for w in self._writers.values():
            w.flush()

    def close(self) -> None:
        """Write what is pending and close the files."""
        for w in self._writers.values():
            w.close()
        self._writers.clear()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
