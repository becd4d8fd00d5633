# What all drivers count and compute with.

ctypedef long long index_t

ctypedef fused real_t:
    float
    double
