# cython: language_level=3
# The thin driver at this CPU level; setup.py has the flags.
include "thin.pxi"
