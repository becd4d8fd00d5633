"""The backend for CuPy: the only room that imports it, and only on first use."""
