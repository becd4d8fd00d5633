"""Gram matrices as operators: kept, in blocks, or on the fly."""
