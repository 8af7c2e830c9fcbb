"""Short-time Fourier transforms: spectra of overlapping pieces of a signal, and the signal from them.

Both are compositions of differentiable ops: pieces are a view of the signal, and adding overlapping pieces up is that view's
derivative.
"""

from __future__ import annotations

from typing import Any

from ...errors import warn_user
from ...shapes import as_int, layout_of
from ...tensor import Tensor
from ..core.numbers import bool_argument
from ..core.recording import fresh
from ..core.registry import OPS, public
from ..core.structured import tensor_argument
from ..creation.create import new_full
from ..elementwise.complex import view_as_real
from ..shape.strided import embed_view


def _lengths(name: str, n_fft: Any, hop_length: Any, win_length: Any) -> tuple[int, int, int]:
    n = as_int(n_fft, "n_fft")
    hop = n // 4 if hop_length is None else as_int(hop_length, "hop_length")
    width = n if win_length is None else as_int(win_length, "win_length")
    if n > 0 and hop <= 0:
        raise RuntimeError(f"{name}(): expected hop_length > 0, but got hop_length={hop}")
    if n > 0 and not 0 < width <= n:
        raise RuntimeError(f"{name}(): expected 0 < win_length <= n_fft, but got win_length={width} (n_fft={n})")
    return n, hop, width


def _centred(window: Tensor | None, width: int, n: int, like: Tensor) -> Tensor | None:
    """Return the window with zeros on both sides up to n points; ones where none is given and they are not all of the piece."""
    if window is None:
        if width == n:
            return None
        window = new_full((width,), 1, like.dtype.to_real())
    if width == n:
        return window
    left = (n - width) // 2
    return OPS["nn.functional.pad"].call(window, (left, n - width - left))


def _check_pieces(x: Tensor, n: int, window: Tensor | None, width: int) -> None:
    """Raise RuntimeError where signals [batch, time] have no pieces of ``n`` points, or the window is none of ``width``."""
    if not 0 < n <= x.shape[1]:
        raise RuntimeError(f"stft(): expected 0 < n_fft < {x.shape[1]}, but got n_fft={n}")
    if window is not None and (window.ndim != 1 or window.shape[0] != width):
        raise RuntimeError(
            f"stft(): expected a 1D window tensor of size equal to win_length={width}, but got window with size {list(window.shape)}"
        )


def _check_flags(**flags: Any) -> None:
    for name, value in flags.items():
        if value is not None:
            bool_argument(value, "stft", name)


def _check_complex(complex_input: bool) -> None:
    if not complex_input:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )


def _check_signal(x: Tensor) -> None:
    if x.ndim not in (1, 2):
        raise RuntimeError(f"stft(): expected a 1D or 2D tensor, got input of shape {list(x.shape)}")


def _check_numbers(x: Tensor) -> None:
    if x.dtype.category < 2:
        raise RuntimeError(f"stft(): expected a tensor of floating point or complex values, got input of {x.dtype}")


@public()
def stft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None,
    return_complex=None, align_to_window=None,
):  # fmt: skip
    """Return spectra of pieces of a signal, […, time] → […, frequency, piece]: Σₖ window[k]·x[m·hop + k]·e^(−2πi·ωk/n_fft).

    input: one signal or a batch of them. n_fft: points of a piece. hop_length: from one piece to the next (n_fft//4).
    win_length, window: the piece is multiplied with the window, which is centred in it. center: pieces are centred at m·hop,
    the signal being extended by ``pad_mode``. normalized: divide by √n_fft. onesided: only the frequencies up to the middle
    (the default for real input). return_complex: False gives (real, imaginary) in a last dim. Derivative: that of `fft.rfft`, piece by piece.
    Errors: RuntimeError where ``return_complex`` is not given for real input, and for lengths that do not fit.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.stft.html
    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    x = tensor_argument(input, "stft")
    if window is not None:
        tensor_argument(window, "stft", "window")
    complex_input = x.dtype.is_complex or (window is not None and window.dtype.is_complex)
    _check_flags(onesided=onesided, return_complex=return_complex, align_to_window=align_to_window)
    if return_complex is None:
        return_complex = complex_input
        _check_complex(complex_input)
    _check_signal(x)
    n, hop, width = _lengths("stft", n_fft, hop_length, win_length)
    single = x.ndim == 1
    if single:
        x = x.unsqueeze(0)
    if center and n > 0:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false.")
        x = OPS["nn.functional.pad"].call(x.unsqueeze(1), (n // 2, n // 2), mode=pad_mode).squeeze(1)
    _check_numbers(x)  # (once padding has had its say)
    _check_pieces(x, n, window, width)
    if onesided is None:
        onesided = not complex_input
    elif onesided and complex_input:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if window is None:
        warn_user(
            "A window was not provided. A rectangular window will be applied, which is known to cause spectral leakage. Other "
            "windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.",
        )
    weights = _centred(window, width, n, x)
    pieces = x.unfold(1, n, hop)
    if weights is not None:
        pieces = pieces * weights
    y = OPS["fft.rfft" if onesided else "fft.fft"].call(pieces, norm="ortho" if normalized else None).transpose(1, 2)
    y = fresh(y.squeeze(0) if single else y)
    if return_complex:
        return y
    warn_user(
        "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for all inputs, "
        "and return_complex=False will raise an error. Call torch.view_as_real on the complex output instead.",
    )
    return view_as_real(y)


def _overlapped(pieces: Tensor, hop: int, size: int) -> Tensor:
    """Return the sum of pieces [batch, piece, n], each ``hop`` points after the one before: [batch, size]."""
    batch = pieces.shape[0]
    return embed_view(pieces, layout_of((batch, size), None, pieces.dtype), layout_of(pieces.shape, (size, hop, 1), pieces.dtype), 0)


def _check_spectra(x: Tensor, n: int, hop: int, width: int, onesided: Any) -> None:
    """Raise RuntimeError where ``x`` cannot be the spectra of pieces of ``n`` points."""
    if not x._layout.size:
        raise RuntimeError("istft(): input tensor cannot be empty.")
    if x.ndim not in (2, 3):
        raise RuntimeError(f"istft(): expected a tensor with 2 or 3 dimensions, got input of shape {list(x.shape)}")
    if hop > width:
        raise RuntimeError(f"istft(): expected 0 < hop_length <= win_length, got hop_length={hop}, win_length={width}")
    if x.shape[-2] != (n // 2 + 1 if onesided else n):
        raise RuntimeError(
            f"istft(): expected the frequency dimension of the input tensor to match {'n_fft / 2 + 1' if onesided else 'n_fft'} when "
            f"onesided={bool(onesided)}, but got {x.shape[-2]} (n_fft={n})"
        )


def _check_inverse_window(window: Tensor, width: int, return_complex: bool) -> None:
    if window.ndim != 1 or window.shape[0] != width:
        raise RuntimeError(
            f"istft(): Invalid window shape. window has to be 1D and length of `win_length` (={width}), got {list(window.shape)}"
        )
    if window.dtype.is_complex and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")


def _check_envelope(envelope: Tensor, n_fft: int, hop: int, width: int, center: bool) -> None:
    """Raise RuntimeError where the windows leave a point without weight."""
    if float(envelope.detach().abs().min()) <= 1e-11:
        raise RuntimeError(
            f"istft(): window overlap add min: 1, some points have no weight in any piece (n_fft={n_fft}, hop_length={hop}, "
            f"win_length={width}, center={center})"
        )


@public()
def istft(
    input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None,
    return_complex=False,
):  # fmt: skip
    """Return the signal whose `stft` is given, with the same arguments: the least-squares one where none has it.

    ``length``: how many points (zeros at the end where there are not so many).
    Derivative: piece by piece, through `fft.irfft` and the window. Errors: RuntimeError for real input, lengths
    that do not fit, and a window whose overlapping pieces leave a point without weight.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.istft.html

    >>> spectra = torch.stft(torch.ones(4), 4, window=torch.ones(4), return_complex=True)
    >>> torch.istft(spectra, 4, window=torch.ones(4))
    tensor([1., 1., 1., 1.])
    """
    x = tensor_argument(input, "istft")
    if not x.dtype.is_complex:
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    n, hop, width = _lengths("istft", n_fft, hop_length, win_length)
    if onesided is None and x.ndim > 1:
        onesided = x.shape[-2] != n
    _check_spectra(x, n, hop, width, onesided)
    if window is None:
        warn_user(
            "A window was not provided. A rectangular window will be applied. Please provide the same window used by stft to make the "
            "inversion lossless.",
        )  # fmt: skip
    else:
        _check_inverse_window(tensor_argument(window, "istft", "window"), width, return_complex)
    if onesided and return_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex (return_complex=True)")
    weights = _centred(window, width, n, x)
    if weights is None:
        weights = new_full((n,), 1, x.dtype.to_real())
    single = x.ndim == 2
    spectra = (x.unsqueeze(0) if single else x).transpose(1, 2)
    norm = "ortho" if normalized else None
    if return_complex:
        pieces = OPS["fft.ifft"].call(spectra, norm=norm)
    else:
        pieces = OPS["fft.irfft"].call(spectra.narrow(2, 0, n // 2 + 1), n=n, norm=norm)
    count = x.shape[-1]
    size = n + hop * (count - 1)
    y = _overlapped(pieces * weights, hop, size)
    envelope = _overlapped((weights * weights).expand(1, count, n), hop, size)
    first = n // 2 if center else 0
    last = first + as_int(length, "length") if length is not None else size - n // 2 if center else size
    kept = min(last, size) - first
    y, envelope = y.narrow(1, first, kept), envelope.narrow(1, first, kept)
    _check_envelope(envelope, n, hop, width, center)
    y = y / envelope
    if last > size:
        warn_user(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check "
            "your center and hop_length settings.",
        )
        y = OPS["nn.functional.pad"].call(y, (0, last - size))
    return y.squeeze(0) if single else y
