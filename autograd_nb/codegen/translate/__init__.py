"""From the text of kernels to LLVM code in two walks over its syntax tree, where Numba takes thirty passes."""
