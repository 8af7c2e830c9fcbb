"""One use in this process: ``python -m tests.packages.runner NAME [--pytorch]`` prints its numbers as JSON."""

import importlib
import json
import os
import random
import sys
import warnings


def _declare_operators() -> None:
    """Let torchvision be imported beside a PyTorch for which its operators in C++ were not built: it stops where one of them is not even declared."""
    import torch

    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def main(name: str, pytorch: bool) -> None:
    """Run ``uses/NAME.py`` with PyTorch, or with this library as ``torch``, and print what it returns."""
    warnings.simplefilter("ignore")
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")
    if pytorch:
        _declare_operators()
    else:
        import autograd_nb

        autograd_nb.as_torch()
    import numpy as np
    import torch

    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  (packages draw from it)
    random.seed(0)
    result = importlib.import_module(f"tests.packages.uses.{name}").run()
    sys.stdout.flush()
    print("\nNUMBERS " + json.dumps({key: [float(v) for v in values] for key, values in result.items()}))


if __name__ == "__main__":
    main(sys.argv[1], "--pytorch" in sys.argv[2:])
