"""Functions of a correlation as power series."""
