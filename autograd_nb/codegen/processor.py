"""Numbers that the processor decides, and the levels of processors that kernels can be compiled for."""

from __future__ import annotations

LINE = 64  #: bytes of a line of memory


class Sized(int):
    """A number that follows from the processor compiled for, by the texts of ``modules``: what vectors hold, how many rows a tile has.

    A kernel's content names it without its value, so that a kernel has one content on all processors (see `build.digest`).
    """

    modules: tuple[str, ...]

    def __new__(cls, value: int, module: str, *sources: Sized) -> Sized:
        """Make one; ``sources``: numbers that it is computed from."""
        made = super().__new__(cls, value)
        made.modules = tuple(sorted({module, *(m for s in sources for m in s.modules)}))
        return made


_V2 = "64bit cmov crc32 cx16 cx8 fxsr mmx popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"

#: what processors of a level offer at least, in LLVM's words (the psABI of x86-64 defines the levels)
LEVELS = {
    "x86-64-v3": tuple(_V3.split()),
    "x86-64-v4": tuple(f"{_V3} avx512bw avx512cd avx512dq avx512f avx512vl".split()),
}


def features(level: str) -> str:
    """Return the features of a level as NUMBA_CPU_FEATURES wants them."""
    return ",".join(f"+{f}" for f in sorted(LEVELS[level]))
