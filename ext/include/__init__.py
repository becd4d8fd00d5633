"""The C++ headers, as package data; ``kernelcore.get_include()`` is the folder for ``-I``."""
