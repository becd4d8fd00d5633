"""Cython finds ``kernelcore/api.pxd`` by itself, since kernelcore can be imported."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import kernelcore

module = Extension(
    "downstream",
    ["downstream.pyx"],
    include_dirs=[kernelcore.get_include()],
    extra_compile_args=["-std=c++17"],
    language="c++",
)
setup(name="downstream", version="1.0", py_modules=[], ext_modules=cythonize([module]))
