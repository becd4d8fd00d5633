"""Every call of BLAS and LAPACK, for NumPy's arrays and for those of other libraries.

    namespace_of             the functions that go with some arrays
    arrays                   the few that NumPy and other namespaces spell in two ways
    cholesky, Cholesky       a + ridge I = U'U, solving with the factor, and what to do where there
                             is none; columns gives a matrix the order that they want
    triangular_solve, triangular_inverse, triangular_square
    gram_product             one triangle of x'x, by which symmetric_product multiplies
    eigh, top_eigh, lanczos  all eigenvectors, or those of the largest eigenvalues
    eigvalsh, eigvalsh_tridiagonal, resolution
    qr, lstsq, norm
    blas, thin               threads of BLAS; products with few columns in one pass

NumPy's arrays go to LAPACK, in place where the caller allows it. Other arrays go to their own
namespace, whose names are those of the Python array API standard; they are never overwritten, and
never copied to the host but for the few numbers by which iterations decide (``arrays.numbers``).

Ctrl-C: a Cholesky factorisation that takes longer than about half a second is done in blocks and
stops between them. An eigendecomposition is one call of LAPACK and cannot be interrupted: Ctrl-C
acts when it is done.
"""

from .dense import (
    gram_product,
    helmert,
    lstsq,
    namespace_of,
    norm,
    qr,
    symmetric_product,
    triangular_inverse,
    triangular_solve,
    triangular_square,
)
from .factor import Cholesky, cholesky, columns
from .spectra import eigh, eigvalsh, eigvalsh_tridiagonal, lanczos, resolution, top_eigh

__all__ = [
    "Cholesky", "cholesky", "columns", "eigh", "eigvalsh", "eigvalsh_tridiagonal", "gram_product",
    "helmert", "lanczos", "lstsq", "namespace_of", "norm", "qr", "resolution", "symmetric_product",
    "top_eigh", "triangular_inverse", "triangular_solve", "triangular_square",
]  # fmt: skip
