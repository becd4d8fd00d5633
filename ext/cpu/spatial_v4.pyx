# cython: language_level=3
# The spatial driver at this CPU level; setup.py has the flags.
include "spatial.pxi"
