"""The checks that scikit-learn has for estimators."""

import warnings

from sklearn.utils.estimator_checks import check_estimator

import kernelcore as kc

WEIGHTS = "check_sample_weight_equivalence_on_dense_data"


def check(model, weights=None):
    """Run all checks; ``weights`` is a reason for which points cannot be repeated."""
    kc.set_threads(1)  # for hundreds of small fits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the checks' own inputs
        expected = None if weights is None else {WEIGHTS: weights}
        found = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = [
        (f["check_name"], f["exception"]) for f in found if f["status"] not in ("passed", "xfail")
    ]
    # what asks for pandas or an array library is skipped where there is none
    assert [f for f in failed if "SkipTest" not in type(f[1]).__name__] == []
    assert len(failed) <= 3 < 35 < len(found)
