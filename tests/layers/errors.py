"""Layers, activations, maps and profiles."""

import numpy as np
from messages import Case

import kernelcore as kc

NTK = kc.presets.mlp(1).ntk
KAPPA0 = kc.profiles.Kappa0()

CASES = [
    Case(ValueError, "w_std must be finite: got inf", lambda: kc.Dense(10**400)),
    Case(
        ValueError,
        "n must be at most 9223372036854775807: got an integer of more than 63 bits",
        lambda: kc.Monomial(10**400),
    ),
    # Parameters.
    Case(TypeError, "w_std must be a real number: got str", lambda: kc.Dense("1")),
    Case(TypeError, "w_std must be a real number: got bool", lambda: kc.Dense(True)),
    Case(TypeError, "w_std must be a real number: got complex", lambda: kc.Dense(1j)),
    Case(TypeError, "b_std must be a real number: got ndarray", lambda: kc.Dense(1, np.ones(1))),
    Case(TypeError, "w_std must be a real number: got NoneType", lambda: kc.Dense(None)),
    Case(ValueError, "w_std must be finite: got nan", lambda: kc.Dense(np.nan)),
    Case(ValueError, "b_std must be finite: got inf", lambda: kc.Dense(1.0, np.inf)),
    Case(ValueError, "w_std must not be negative: got -1.0", lambda: kc.Dense(-1)),
    Case(ValueError, "b_std must not be negative: got -0.5", lambda: kc.Dense(1, -0.5)),
    Case(ValueError, "w_std must not be negative: got -2.0", lambda: kc.Conv(3, w_std=-2)),
    Case(TypeError, "trainable must be True or False: got int", lambda: kc.Dense(trainable=1)),
    Case(TypeError, "sum must be True or False: got str", lambda: kc.Input("yes")),
    Case(TypeError, "sum must be True or False: got int", lambda: kc.Flatten(0)),
    Case(ValueError, "shift must be finite: got -inf", lambda: kc.Relu(shift=-np.inf)),
    Case(TypeError, "slope must be a real number: got list", lambda: kc.LeakyRelu([0.1])),
    Case(TypeError, "n must be an integer: got float", lambda: kc.RectifiedPower(1.5)),
    Case(TypeError, "n must be an integer: got bool", lambda: kc.Hermite(True)),
    Case(ValueError, "n must be at least 0: got -1", lambda: kc.Monomial(-1)),
    Case(
        TypeError, "coefficients must be a sequence of numbers: got int", lambda: kc.PowerSeries(3)
    ),
    Case(
        ValueError,
        "coefficients must have at least one entry: got none",
        lambda: kc.PowerSeries(()),
    ),
    Case(
        TypeError,
        "coefficients[1] must be a real number: got str",
        lambda: kc.PowerSeries((1, "2")),
    ),
    Case(ValueError, "right must have 3 entries: got 2", lambda: kc.OneKink(0, (1, 2), (0, 0, 0))),
    Case(
        ValueError,
        "left must have 3 entries: got 4",
        lambda: kc.OneKink(0, (1, 2, 3), (0, 0, 0, 0)),
    ),
    Case(TypeError, "fn must be callable: got str", lambda: kc.Activation("tanh")),
    Case(TypeError, "filter_size must be an integer: got float", lambda: kc.Conv(3.0)),
    Case(ValueError, "filter_size must be at least 1: got 0", lambda: kc.Conv(0)),
    Case(ValueError, "filter_size must have one or two entries: got 3", lambda: kc.Conv((3, 3, 3))),
    Case(ValueError, "stride[1] must be at least 1: got 0", lambda: kc.Conv(3, stride=(1, 0))),
    Case(
        ValueError,
        "padding must be one of 'same', 'valid', 'circular': got 'full'",
        lambda: kc.Conv(3, padding="full"),
    ),
    Case(ValueError, "window must be at least 1: got -2", lambda: kc.AvgPool(-2)),
    # Duals.
    Case(
        TypeError,
        "x must be real, got complex128; pass x.real or its magnitude",
        lambda: kc.Relu()([1j]),
    ),
    Case(ValueError, "var1 must be finite: got inf", lambda: kc.Erf().dual(np.inf, 1.0, 0.0)),
    Case(ValueError, "cov must be finite: got nan", lambda: kc.Erf().dual(1.0, 1.0, [0.0, np.nan])),
    Case(ValueError, "var2 must not be negative: got -1.0", lambda: kc.Tanh().dual(1.0, -1.0, 0.0)),
    Case(
        ValueError,
        "var1, var2 and cov must broadcast together: got shapes (2,), (3,), ()",
        lambda: kc.Relu().dual([1, 1], [1, 1, 1], 0),
    ),
    Case(
        TypeError,
        "var1 must be real, got complex128; pass var1.real or its magnitude",
        lambda: kc.Relu().dual(1j, 1, 0),
    ),
    Case(
        ValueError,
        "fn must be finite on the real line: got a non-finite value",
        lambda: kc.Activation(lambda x: np.where(x > 1, np.nan, x)).dual(1.0, 1.0, 0.5),
    ),
    # Profiles and maps.
    Case(ValueError, "s must be positive: got 0.0", lambda: kc.profiles.Exp(0)),
    Case(ValueError, "n must be at least 0: got -1", lambda: kc.profiles.Power(-1)),
    Case(ValueError, "max_degree must be at least 1: got 0", lambda: kc.profiles.Fitted(abs, 0)),
    Case(ValueError, "u must be in [-1, 1]: got 1.5", lambda: KAPPA0([0.5, 1.5])),
    Case(ValueError, "u must be finite: got nan", lambda: kc.profiles.Power(2)([0.5, np.nan])),
    Case(TypeError, "fn must be callable: got float", lambda: kc.profiles.Fitted(0.5)),
    Case(
        ValueError,
        "fn must return one value per entry: got shape () for input of shape (17,)",
        lambda: kc.profiles.Fitted(np.sum),
    ),
    Case(
        ValueError,
        "fn must be finite on [-1, 1]: got inf at 1.0",
        lambda: kc.profiles.Fitted(lambda u: np.where(u < 1, u, np.inf)),
    ),
    Case(
        TypeError,
        "fn(u) must be real, got complex128; pass fn(u).real or its magnitude",
        lambda: kc.profiles.Fitted(lambda u: u * 1j),
    ),
    *(
        Case(
            TypeError,
            f"profile must be a profile, a callable or a sequence of coefficients: got {got}",
            lambda given=given: kc.DotProduct(given),
        )
        for got, given in (
            ("int", 3),
            ("ndarray", np.ones((2, 2))),
            ("Relu", kc.Relu()),
            ("Kappa1; call it", kc.profiles.Kappa1),
            ("Ntk; pass its profile method", NTK),
        )
    ),
    Case(
        TypeError,
        "coefficients[1] must be a real number: got str",
        lambda: kc.profiles.as_profile([1.0, "2"]),
    ),
    Case(
        ValueError,
        "profile must be positive at 1: profiles.PowerSeries((1.0, -1.0)) is 0.0",
        lambda: kc.DotProduct((1, -1)),
    ),
    Case(
        ValueError,
        "profile must be largest at 1: profiles.PowerSeries((0.0, -1.0, 2.0)) is 1.0 there, and 3 "
        "in size at -1",
        lambda: kc.DotProduct((0, -1, 2)),
    ),
    # Windows.
    Case(
        ValueError,
        "stride must have as many entries as (3,): got 2",
        lambda: kc.Conv((3,), stride=(1, 1)),
    ),
    Case(
        ValueError,
        "stride must have as many entries as (2, 2): got 1",
        lambda: kc.AvgPool(2, stride=(1,)),
    ),
    Case(ValueError, "window[1] must be at least 1: got 0", lambda: kc.AvgPool((2, 0))),
    Case(
        ValueError,
        "padding must be one of 'same', 'valid', 'circular': got None",
        lambda: kc.AvgPool(2, padding=None),
    ),
    Case(TypeError, "subsampling must be an integer: got float", lambda: kc.GaussianPool(0.5)),
    Case(ValueError, "subsampling must be at least 1: got 0", lambda: kc.GaussianPool(0)),
    Case(
        ValueError,
        "fn must grow slower than the normal density falls: at variance 2 E[fn(x)^2] is infinite, "
        "or most of it beyond 13 standard deviations; scale X or w_std down",
        lambda: kc.Activation(lambda x: np.exp(x * x / 8)).dual(2.0, 2.0, 0.5),
    ),
    # Functions that are given.
    Case(
        ValueError,
        "fn must return one value per entry: got shape () for input of shape (1, 1665)",
        lambda: kc.Activation(np.sum).dual(1.0, 1.0, 0.5),
    ),
]
