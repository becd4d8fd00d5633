"""Gram matrices as operators, and one interface to all that stands for a matrix."""
