"""What is foreseen of modules: the forward kernels of a layer will be wanted when the model that it is put into is called.

A layer of this library is described by its attributes and the layouts of its parameters (see `ops.core.foreseen`); a worker calls its like on
operands of the size that such layers are given most often. Sizes decide little of which kernels run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from ..codegen.build import workers
from ..dtypes import float64, get_default_dtype, int64
from ..ops.core.foreseen import Opaque, described, hollow, note
from ..ops.core.registry import OPS
from ..shapes import Layout, layout_of
from ..tensor import Tensor

ROWS = 32  #: samples, or pixels along a side
FEW = 4

#: the shapes of the operands of a layer's forward pass, by its class
OPERANDS: dict[str, Callable[[Any], tuple[tuple[int, ...], ...]]] = {
    "Linear": lambda m: ((ROWS, m.in_features),),
    **dict.fromkeys(("Conv1d", "ConvTranspose1d"), lambda m: ((FEW, m.in_channels, ROWS),)),
    **dict.fromkeys(("Conv2d", "ConvTranspose2d"), lambda m: ((FEW, m.in_channels, ROWS, ROWS),)),
    **dict.fromkeys(("Conv3d", "ConvTranspose3d"), lambda m: ((FEW, m.in_channels, ROWS, ROWS, ROWS),)),
    "BatchNorm1d": lambda m: ((ROWS, m.num_features),),
    "BatchNorm2d": lambda m: ((FEW, m.num_features, ROWS, ROWS),),
    "BatchNorm3d": lambda m: ((FEW, m.num_features, ROWS, ROWS, ROWS),),
    "GroupNorm": lambda m: ((FEW, m.num_channels, ROWS, ROWS),),
    **dict.fromkeys(("LayerNorm", "RMSNorm"), lambda m: ((FEW, ROWS, *m.normalized_shape),)),
    **dict.fromkeys(("MaxPool1d", "AvgPool1d", "AdaptiveAvgPool1d", "AdaptiveMaxPool1d"), lambda m: ((FEW, FEW, ROWS),)),
    **dict.fromkeys(("MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d"), lambda m: ((FEW, FEW, ROWS, ROWS),)),
    **dict.fromkeys(("RNN", "LSTM", "GRU"), lambda m: ((FEW, FEW, m.input_size),)),
    **dict.fromkeys(("Embedding", "EmbeddingBag"), lambda m: ((FEW, FEW),)),
    "MultiheadAttention": lambda m: ((FEW, ROWS, m.embed_dim), (FEW, ROWS, m.kdim), (FEW, ROWS, m.vdim)),
    "TransformerEncoderLayer": lambda m: ((FEW, ROWS, m.linear1.in_features),),
    **dict.fromkeys(
        ("ReLU", "LeakyReLU", "ELU", "SiLU", "GELU", "Tanh", "Sigmoid", "Softplus", "Dropout", "Softmax", "LogSoftmax"),
        lambda m: ((ROWS, ROWS),),
    ),
}
#: modules without parameters that are foreseen when a program's code mentions them, or the functions that they call: by their
#: classes what these are given, and the shapes of the operands; integers are indices of classes
MENTIONED: dict[str, tuple[tuple[Any, ...], tuple[tuple[int, ...], ...], bool]] = {
    **dict.fromkeys(("CrossEntropyLoss", "NLLLoss"), ((), ((ROWS, FEW), (ROWS,)), True)),
    **dict.fromkeys(
        ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss"),
        ((), ((ROWS, FEW), (ROWS, FEW)), False),
    ),
    **dict.fromkeys(("ReLU", "LeakyReLU", "ELU", "SiLU", "GELU", "Tanh", "Sigmoid", "Softplus"), ((), ((ROWS, ROWS),), False)),
    **dict.fromkeys(("Softmax", "LogSoftmax"), ((-1,), ((ROWS, ROWS),), False)),
}
#: functions whose kernels take long to compile, foreseen when a program's code mentions them: the shapes of their operands, and whether
#: they are float64 where the code mentions that too
FUNCTIONS: dict[str, tuple[tuple[tuple[int, ...], ...], bool]] = {
    "scaled_dot_product_attention": (((FEW, FEW, ROWS, FEW),) * 3, False),
    "conv2d": (((FEW, FEW, ROWS, ROWS), (FEW, FEW, 3, 3)), False),
    **dict.fromkeys(("cholesky", "inv", "slogdet", "logdet"), (((ROWS, ROWS),), True)),
    "cholesky_solve": (((ROWS, 1), (ROWS, ROWS)), True),
    "solve": (((ROWS, ROWS), (ROWS, 1)), True),
}
_APART = ("_parameters", "_buffers", "_modules")  #: attributes that are described by themselves
_INDICES = ("Embedding", "EmbeddingBag")


def note_module(module: Any) -> None:
    """Tell workers of a module that becomes part of another."""
    kind = type(module)
    if workers.foresees() and kind.__name__ in OPERANDS and kind.__module__.startswith(__package__ + "."):
        try:
            note("module", _state(module))
        except Opaque:
            pass


def _state(module: Any) -> tuple[Any, ...]:
    """Return (module and name of the class, plain attributes, parameters, buffers, modules)."""
    attributes = {}
    for name, value in module.__dict__.items():
        if name not in _APART:
            try:
                described(value)
                attributes[name] = value
            except Opaque:  # such as hooks: what asks for it fails
                pass
    kind = type(module)
    children = {name: None if child is None else _state(child) for name, child in module._modules.items()}
    return kind.__module__, kind.__name__, attributes, dict(module._parameters), dict(module._buffers), children


def _rebuilt(state: tuple[Any, ...]) -> Any:
    home, name, attributes, parameters, buffers, children = state
    if not home.startswith(__package__ + "."):
        raise Opaque(home)
    kind = getattr(import_module(home), name)
    module = kind.__new__(kind)
    module.__setstate__({**attributes, "_parameters": parameters, "_buffers": buffers})
    module._modules.update({n: None if child is None else _rebuilt(child) for n, child in children.items()})
    return module


def rehearse_module(state: tuple[Any, ...], by_operands: bool) -> tuple[list[Tensor], Any]:
    """Return (leaves, results) of a module, which is described by `note_module`, of hollow operands, which require grad if so asked."""
    module = _rebuilt(state)
    d = next((p._layout.dtype for p in module._parameters.values() if p is not None), get_default_dtype())
    if type(module).__name__ in _INDICES:
        d = int64
    operands = [hollow(layout_of(shape, None, d), by_operands and d != int64) for shape in OPERANDS[type(module).__name__](module)]
    return [t for t in (*operands, *module.parameters()) if t.requires_grad], module(*operands)


def mentioned(names: Collection[str]) -> Iterator[Callable[[], tuple[list[Tensor], Any]]]:
    """Yield what rehearses each module that a program's names are of, or the function that it calls: it returns (leaves, results)."""
    home = import_module(f"{__package__}.modules")
    functional = import_module(f"{__package__}.functional")
    plain = {n.replace("_", "").lower() for n in names}  # leaky_relu is LeakyReLU's function
    for name, (given, shapes, indices) in MENTIONED.items():
        kind = getattr(home, name)
        calls = [n for n in kind.forward.__code__.co_names if callable(getattr(functional, n, None))]
        if name.lower() in plain or any(n in names for n in calls):
            yield partial(_called, kind, given, shapes, indices)
    for name, (sizes, exact) in FUNCTIONS.items():
        if name in names:
            d = float64 if exact and "float64" in names else get_default_dtype()
            yield partial(_applied, name, [layout_of(shape, None, d) for shape in sizes])
    if "clip_grad_norm_" in names:
        yield _clipped


def _applied(name: str, layouts: list[Layout]) -> tuple[list[Tensor], Any]:
    """Return (operands, result) of a function of this library, of hollow operands."""
    operands = [hollow(layout, True) for layout in layouts]
    return operands, (OPS.get(name) or OPS[f"linalg.{name}"]).call(*operands)


def _clipped() -> tuple[list[Tensor], Any]:
    """Clip a hollow gradient."""
    given = hollow(layout_of((ROWS,), None, get_default_dtype()), True)
    given._grad = hollow(given._layout)
    import_module(f"{__package__}.utils").clip_grad_norm_([given], 1.0)
    return [given], None


def _called(kind: Any, given: tuple[Any, ...], shapes: tuple[tuple[int, ...], ...], indices: bool) -> tuple[list[Tensor], Any]:
    d = get_default_dtype()
    first = hollow(layout_of(shapes[0], None, d), True)
    others = [hollow(layout_of(shape, None, int64 if indices else d)) for shape in shapes[1:]]
    return [first], kind(*given)(first, *others)
