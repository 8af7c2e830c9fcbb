"""The kernels once more, with every index checked: for graphs that come from files (see `compiler.trace.stored`).

`kernels` are the files of `autograd_nb.kernels`, imported a second time under this package. What they import of ``..codegen`` is
then what stands here: `jit` lets Numba check indices, and in place of the intrinsics that look at no bounds stand functions that
do; loops are counted (`counting`). So there is one text of each kernel, and a wrong number from a file ends in an IndexError rather than somewhere in memory.
"""
