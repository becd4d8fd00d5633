"""Gram matrices as operators, kept or computed when needed; and what stands for a matrix."""
