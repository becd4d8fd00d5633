"""The engine for NumPy arrays: compiled drivers, and the walks that prepare their calls."""
