"""Functions of a correlation, and kernels on spheres, as power series."""
