# cython: language_level=3
# The gegenbauer driver at this CPU level; setup.py has the flags.
include "gegenbauer.pxi"
