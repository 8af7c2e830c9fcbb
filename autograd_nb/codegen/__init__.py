"""From scalar formulas to compiled kernels: symbols, vectorisable mathematics, loop templates, the build."""
