"""The drivers for GPUs, as package data; ``kernelcore.engine.gpu.compile`` reads them."""
