"""Modules whose layers are shared out among ranks: `torch.distributed.tensor.parallel`.

A style says along which dim the parameters of a layer are split, and what its inputs and outputs are: `parallelize_module` puts it on the layers
that a plan names. What ranks exchange is then what `distributed.tensor` needs for the values of one process.

Source: https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

from ...distributed.tensor import DeviceMesh, DTensor, Placement, Replicate, Shard, distribute_tensor
from ...errors import warn_user
from ...tensor import Tensor
from ..modules.linear import Linear
from ..modules.module import Module
from ..modules.sparse import Embedding
from ..parameter import Parameter


def _placed(value: Any, mesh: DeviceMesh, given: Any, wanted: Any) -> Any:
    """Return an input as a DTensor that is placed as wanted; None for ``given``: as it is."""
    if not isinstance(value, Tensor) or given is None:
        return value
    t = value if isinstance(value, DTensor) else DTensor.from_local(value, mesh, (given,))
    return t.redistribute(mesh, (wanted,)) if wanted is not None and t.placements != (wanted,) else t


def distribute_module(
    module: Module, device_mesh: DeviceMesh | None = None, partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None, output_fn: Callable[[Module, Any, DeviceMesh], Any] | None = None,
) -> Module:  # fmt: skip
    """Make all parameters and buffers of a module DTensors: as ``partition_fn(name, module, mesh)`` makes them, called for each module within, else alike on
    all ranks. ``input_fn(module, inputs, mesh)`` and ``output_fn(module, outputs, mesh)`` are called before and after its `forward`. The same module is
    returned.
    """
    mesh = DeviceMesh.from_group(None) if device_mesh is None else device_mesh
    for name, inner in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, inner, mesh)
        for key, p in inner._parameters.items():
            if p is not None and not isinstance(p, DTensor):
                inner._parameters[key] = Parameter(distribute_tensor(p, mesh, [Replicate()]), p.requires_grad)
        for key, b in inner._buffers.items():
            if b is not None and not isinstance(b, DTensor):
                inner._buffers[key] = distribute_tensor(b, mesh, [Replicate()])
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, mesh))
    return module


class ParallelStyle:
    """The base class of the ways to share a layer out. ``src_data_rank``: the rank whose parameters count; None: they are known to be equal."""

    src_data_rank: int | None = 0

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        raise NotImplementedError

    def _split(self, module: Module, mesh: DeviceMesh, dims: Mapping[str, int | None]) -> None:
        """Split the layer's parameters along these dims; None: each rank has all."""
        for name, p in list(module._parameters.items()):
            if p is not None:
                dim = dims.get(name)
                placement: Placement = Replicate() if dim is None else Shard(dim)
                module._parameters[name] = Parameter(distribute_tensor(p, mesh, [placement], src_data_rank=self.src_data_rank), p.requires_grad)


class _LayerParallel(ParallelStyle):
    """A layer of one input and one output, with parameters that are split along ``dims``."""

    dims: Mapping[type, Mapping[str, int | None]]
    wanted: Any
    use_local_output: bool

    def __init__(self, input_layouts: Any, output_layouts: Any, use_local_output: bool):
        self.input_layouts, self.output_layouts, self.use_local_output = input_layouts, output_layouts, use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        kind = next((k for k in self.dims if isinstance(module, k)), None)
        if kind is None:
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding, not {type(module).__name__}")
        self._split(module, device_mesh, self.dims[kind])
        wanted = self._input(module)

        def before(m: Module, inputs: Any) -> Any:
            return (_placed(inputs[0], device_mesh, self.input_layouts, wanted), *inputs[1:])

        def after(m: Module, inputs: Any, output: Any) -> Any:
            found = output.redistribute(device_mesh, (_of(self.output_layouts, output),))
            return found.to_local() if self.use_local_output else found

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module

    def _input(self, module: Module) -> Placement:
        return Replicate()


def _of(placement: Placement, t: Tensor) -> Placement:
    """Return a placement with its dim counted from the front."""
    return Shard(placement.dim % t.ndim) if isinstance(placement, Shard) else placement


class ColwiseParallel(_LayerParallel):
    """Each rank has some columns of a layer, and computes some of its outputs' features: Linear and Embedding.

    >>> dist.tensor.parallel.ColwiseParallel().output_layouts
    Shard(dim=-1)
    """

    dims = {Linear: {"weight": 0, "bias": 0}, Embedding: {"weight": 1}}

    def __init__(self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True):
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)


class RowwiseParallel(_LayerParallel):
    """Each rank has some rows of a layer, and computes a summand of its outputs of some of the inputs' features: Linear and Embedding.

    >>> dist.tensor.parallel.RowwiseParallel().input_layouts
    Shard(dim=-1)
    """

    dims = {Linear: {"weight": 1, "bias": None}, Embedding: {"weight": 0}}

    def __init__(self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None, use_local_output: bool = True):
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def _input(self, module: Module) -> Placement:
        return Shard(-1) if isinstance(module, Linear) else Replicate()


class SequenceParallel(ParallelStyle):
    """Each rank computes its part of a sequence, with parameters that all have: LayerNorm, RMSNorm, Dropout.

    >>> dist.tensor.parallel.SequenceParallel().sequence_sharding
    Shard(dim=1)
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        self.sequence_sharding: Shard = Shard(sequence_dim)
        self.use_local_output: bool = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self._split(module, device_mesh, {})

        def after(m: Module, inputs: Any, output: Any) -> Any:
            found = output.redistribute(device_mesh, (self.sequence_sharding,))
            return found.to_local() if self.use_local_output else found

        module.register_forward_pre_hook(
            lambda m, inputs: (_placed(inputs[0], device_mesh, self.sequence_sharding, self.sequence_sharding), *inputs[1:])
        )
        module.register_forward_hook(after)
        return module


def _several(layouts: Any) -> tuple[Any, ...]:
    return layouts if isinstance(layouts, tuple) else (layouts,)


class PrepareModuleInput(ParallelStyle):
    """The inputs of a module, which are placed as ``input_layouts`` say, are moved to ``desired_input_layouts`` before its `forward`."""

    def __init__(
        self, *, input_layouts: Any = None, desired_input_layouts: Any = None, input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None, use_local_output: bool = False,
    ):  # fmt: skip
        self.input_layouts: tuple[Any, ...] | None = None if input_layouts is None else _several(input_layouts)
        self.desired: tuple[Any, ...] | None = None if desired_input_layouts is None else _several(desired_input_layouts)
        self.kwargs: dict[str, Placement] = dict(input_kwarg_layouts or {})
        self.desired_kwargs: dict[str, Placement] = dict(desired_input_kwarg_layouts or {})
        self.use_local_output = use_local_output
        if self.input_layouts is not None and (self.desired is None or len(self.desired) != len(self.input_layouts)):
            raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        if self.kwargs.keys() != self.desired_kwargs.keys():
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have the same names")

    def _one(self, value: Any, mesh: DeviceMesh, given: Any, wanted: Any) -> Any:
        found = _placed(value, mesh, given, wanted)
        return found.to_local() if self.use_local_output and isinstance(found, DTensor) else found

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def before(m: Module, inputs: Any, options: Any) -> Any:
            if self.input_layouts is not None and self.desired is not None:
                if len(inputs) != len(self.input_layouts):
                    raise ValueError("module inputs and input_layouts should have same length!")
                inputs = tuple(self._one(v, device_mesh, a, b) for v, a, b in zip(inputs, self.input_layouts, self.desired, strict=True))
            moved = {k: self._one(options[k], device_mesh, self.kwargs[k], self.desired_kwargs[k]) for k in self.kwargs if k in options}
            return inputs, {**options, **moved}

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """The outputs of a module, which are placed as ``output_layouts`` say, are moved to ``desired_output_layouts`` after its `forward`."""

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True):
        self.output_layouts: tuple[Any, ...] = _several(output_layouts)
        self.desired: tuple[Any, ...] = _several(desired_output_layouts)
        self.use_local_output: bool = use_local_output
        if len(self.output_layouts) != len(self.desired):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def after(m: Module, inputs: Any, outputs: Any) -> Any:
            every = outputs if isinstance(outputs, tuple) else (outputs,)
            if len(every) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            found = [_placed(v, device_mesh, a, b) for v, a, b in zip(every, self.output_layouts, self.desired, strict=True)]
            kept = tuple(t.to_local() if self.use_local_output and isinstance(t, DTensor) else t for t in found)
            return kept if isinstance(outputs, tuple) else kept[0]

        module.register_forward_hook(after)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module."""

    def __init__(
        self, *, input_layouts: Any = None, desired_input_layouts: Any = None, input_kwarg_layouts: Any = None, desired_input_kwarg_layouts: Any = None,
        use_local_input: bool = False, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True,
    ):  # fmt: skip
        self.before: PrepareModuleInput = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts, input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts, use_local_output=use_local_input,
        )  # fmt: skip
        self.after: PrepareModuleOutput = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts, use_local_output=use_local_output
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        return self.after._apply(self.before._apply(module, device_mesh), device_mesh)


def _named(module: Module, atoms: list[str]) -> Iterator[Module]:
    """Yield the modules of a path whose parts may be patterns: "layers.*.attention"."""
    if not atoms:
        yield module
        return
    for name, child in module.named_children():
        if fnmatch(name, atoms[0]):
            yield from _named(child, atoms[1:])


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None, parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None, *,
    src_data_rank: int | None = 0,
) -> Module:  # fmt: skip
    """Split the layers of a module among the ranks of ``device_mesh``, of one dim, as a plan says: a style for the module itself, or one for each of some
    paths, "layers.*.wq". All ranks call it, and those of rank ``src_data_rank`` count. The same module is returned.

    A path that names nothing warns. TypeError for a plan that is none.

    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> plan = {"0": dist.tensor.parallel.ColwiseParallel(), "2": dist.tensor.parallel.RowwiseParallel()}
    >>> net = dist.tensor.parallel.parallelize_module(net, dist.tensor.init_device_mesh("cpu", (2,)), plan)
    >>> net[0].weight.placements, net(torch.ones(3, 4)).shape
    ((Shard(dim=0),), torch.Size([3, 2]))
    """
    mesh = DeviceMesh.from_group(None) if device_mesh is None else device_mesh
    if parallelize_plan is None:
        warn_user("No parallelize_plan is provided and auto-parallel is not supported at the moment, so this parallelize_module call will do nothing.")
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {type(parallelize_plan)} found!")
    for path, style in parallelize_plan.items():
        found = list(_named(module, path.split(".") if path else []))
        if not found:
            warn_user(f"Parallelize plan key {path!r} could not be resolved: no submodule of {type(module).__name__} has that name.")
        for inner in found:
            parallelize_module(inner, mesh, style, src_data_rank=src_data_rank)
    return module


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Allow losses of outputs whose classes are shared out, which are computed of whole outputs here."""
    yield


__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
    "distribute_module", "loss_parallel", "parallelize_module",
]  # fmt: skip
