"""The two formats of half precision, carried as uint16, to and from float32, and complex numbers of two such parts, carried as uint32."""

from __future__ import annotations

from ..namespace import formula, m
from ..symbols import Sym, where


@formula
def half_to_float(h: Sym) -> Sym:
    """Return the float32 of the half whose bits are ``h`` (uint16); exact, denormals, infinities and NaN included.

    The bits are moved to where float32 has them, which leaves the exponent too small by 112: a product with 2^112 sets
    it right and normalises denormals. An exponent of all ones is widened by hand.
    """
    bits = h.cast("uint32")
    magnitude = (bits & 0x7FFF) << 13
    scaled = (magnitude.bitcast("float32") * 2.0**112).bitcast("uint32")
    wide = where(magnitude >= 0x0F800000, magnitude | 0x7F800000, scaled)
    return (wide | ((bits & 0x8000) << 16)).bitcast("float32")


@formula
def float_to_half(x: Sym) -> Sym:
    """Return the bits (uint16) of the half nearest to ``x`` (float32), ties to even; from 65520 on infinity; NaN is 0x7e00.

    Normal results: the exponent is rebased and half an ulp added to the bits, less one if the kept part is even. Denormal
    results: adding 0.5 makes the float adder round at the right bit.
    """
    bits = x.bitcast("uint32")
    sign = bits & 0x80000000
    magnitude = bits ^ sign
    normal = (magnitude - 0x37FFF001 + ((magnitude >> 13) & 1)) >> 13
    tiny = (magnitude.bitcast("float32") + 0.5).bitcast("uint32") - 0x3F000000
    out = where(magnitude < 0x38800000, tiny, normal)
    out = where(magnitude >= 0x477FF000, 0x7C00, out)
    out = where(magnitude > 0x7F800000, 0x7E00, out)
    return (out | (sign >> 16)).cast("uint16")


@formula
def bfloat_to_float(h: Sym) -> Sym:
    """Return the float32 of the bfloat16 whose bits are ``h`` (uint16): they are its upper half."""
    return (h.cast("uint32") << 16).bitcast("float32")


@formula
def float_to_bfloat(x: Sym) -> Sym:
    """Return the bits (uint16) of the bfloat16 nearest to ``x`` (float32), ties to even; NaN is 0x7fc0.

    Half an ulp is added to the bits, less one if the kept part is even; a carry goes on to the exponent, at last to infinity's.
    """
    bits = x.bitcast("uint32")
    nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, nearest).cast("uint16")


@formula
def chalf_to_complex(h: Sym) -> Sym:
    """Return the complex64 of the complex32 whose bits are ``h`` (uint32): the real part is the lower half."""
    return m.complex(half_to_float((h & 0xFFFF).cast("uint16")), half_to_float((h >> 16).cast("uint16")))  # type: ignore[no-any-return]


@formula
def parts_to_chalf(re: Sym, im: Sym) -> Sym:
    """Return the bits (uint32) of the complex32 whose parts are nearest to these (float32)."""
    return float_to_half(re).cast("uint32") | (float_to_half(im).cast("uint32") << 16)
