"""Spectra from cold: without what earlier calls left in caches."""

import pkgutil
from importlib import import_module

import kernelcore.spectrum


def caches():
    """Everything under kernelcore.spectrum that remembers."""
    package = kernelcore.spectrum
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    found = {id(v): v for module in modules for v in vars(module).values()}
    return [v for v in found.values() if hasattr(v, "cache_clear")]


def forget(found):
    for cache in found:
        cache.cache_clear()
