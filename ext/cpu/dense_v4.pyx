# cython: language_level=3
# The dense driver at this CPU level; setup.py has the flags.
include "dense.pxi"
