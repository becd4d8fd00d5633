# cython: language_level=3
# The cyclic driver at this CPU level; setup.py has the flags.
include "cyclic.pxi"
