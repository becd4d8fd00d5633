# cython: language_level=3
# The waves driver at this CPU level; setup.py has the flags.
include "waves.pxi"
