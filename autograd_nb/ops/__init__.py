"""The ops: a family a file. Importing this package declares them all and attaches them to Tensor."""

# in-place forms are made of the others
from . import linalg
from .core import double_backward, inplace
from .creation import cast, convert, create, data, device, dlpack, ranges, storage
from .creation import queries as asking
from .elementwise import (
    activation,
    arithmetic,
    binary,
    comparison,
    complex,
    integers,
    operators,
    orthogonal,
    special,
    unary,
    where,
)
from .indexing import assignment, embedding, gather, index_select, indexing, masked, picking, searching, sorting
from .indexing import embedding_bag as bags
from .nn import (
    attention,
    batch_norm,
    conv,
    cross_entropy,
    ctc,
    distance,
    dropout,
    fold,
    interpolate,
    layer_norm,
    linear_cross_entropy,
    loss,
    multihead,
    normalization,
    pool,
    recurrent,
    softmax,
)
from .nn import (
    fractional_pool as fractional,
)
from .nn import (
    grid_sample as grid,
)
from .nn import (
    native_norms as native,
)
from .products import added, einsum, matmul, pairwise
from .random import draws as random
from .random import sampling, whole_numbers
from .reduce import hashing, histogram, norms, quantile, scan, segment, statistics, summary, sums
from .shape import cat, pad, parts, pixels, rearrange, shape, strided, turning
from .signal import fft, finite_difference, stft, windows

# these are made of the others, and so come last
from .shape.copies import __name__ as _copies  # isort: skip
from .core.mutation import __name__ as _mutation  # isort: skip
