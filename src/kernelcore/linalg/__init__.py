"""Every call of BLAS and LAPACK."""
