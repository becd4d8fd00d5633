# cython: language_level=3
# The slopes driver at this CPU level; setup.py has the flags.
include "slopes.pxi"
