"""Ctrl-C ends a long Gram matrix at once, and a watch sees how far it is."""

import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest

import kernelcore as kc
from kernelcore.engine.cpu import calls as _calls
from kernelcore.engine.cpu import dispatch as _dispatch

# Kernel and shape of a matrix that takes ten seconds at least, on two threads, too: of entries that
# take less than a millisecond each, or seconds. And of a small one that is right before and after.
LONG = {
    "rows": ("presets.mlp(200, kc.Erf()).ntk", (6000, 20)),
    "images": ("presets.cntk(21).ntk", (400, 32, 32, 3)),
    "large images": ("presets.cntk(40).ntk", (24, 48, 48, 3)),
    "cyclic": ("CyclicConvolution(6, 8, kc.profiles.Exp(1.0))", (2000, 1000)),
    "long signals": ("CyclicConvolution(9, 20000, (0.1, 0.2, 0.7))", (20, 40000)),
}
SMALL = {
    2: ("CyclicConvolution(2, 3, (0.1, 0.2, 0.7))", (5, 9)),
    4: ("presets.cntk(3).ntk", (3, 6, 5, 3)),
}
SCRIPT = """
import signal, sys, time
import numpy as np
import kernelcore as kc

def points(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return x / np.abs(x).max()

signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have it ignored
kernel, x, small, few = kc.{kernel}, points({shape}), kc.{small}, points({few})
want = small(few)
print("ready", flush=True)
try:
    kernel(x, n_threads={threads})
except KeyboardInterrupt:
    print("interrupted", flush=True)
    assert (small(few) == want).all()
    print("usable", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_a_gram_matrix(name, threads):
    kernel, shape = LONG[name]
    small, few = SMALL[len(shape)]
    script = SCRIPT.format(kernel=kernel, shape=shape, small=small, few=few, threads=threads)
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)  # of ten seconds
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        answer = process.stdout.readline()
        took = time.monotonic() - sent
        assert answer == "interrupted\n"
        assert process.stdout.readline() == "usable\n"
    assert took < 2.0  # the drivers look every 0.1 s; the rest is for a busy machine


# ---- drivers with a watch


def sums(n):
    terms = _calls.Terms(n, np.ones_like(n), np.zeros_like(n), np.empty_like(n))
    zeros, out = np.zeros(2, np.int64), np.empty((2, 2000, 4))
    _dispatch.driver("gegenbauer").project(terms, (2, 200), zeros, zeros, out, 2)
    return out


def integrals(t):
    out = np.empty(3000)
    _dispatch.driver("gegenbauer").integrate(t, t, 5.0, out, np.empty(2 * len(t)))
    return out


def normal(*shape):
    return lambda: np.random.default_rng(0).standard_normal(shape, np.float32)


NTK, CNTK = kc.presets.mlp(40, kc.Erf()).ntk, kc.presets.cntk(15).ntk
CYCLIC = kc.CyclicConvolution(6, 100, (0.1, 0.2, 0.7))
# Work of half a second or more: driver, function, input, what calls it. Waves, thin
# products and profiles are over before anybody looks, at any size that fits into a test.
WATCHED = {
    "rows": ("dense", "gram", normal(4000, 20), NTK),
    "two sides": ("dense", "gram", normal(4000, 20), lambda x: NTK(x, x[:3000])),
    "images": ("spatial", "gram", normal(28, 20, 20, 3), CNTK),
    "single images": ("spatial", "selves", normal(100, 45, 45, 3), CNTK.diag),
    "cyclic": ("cyclic", "gram", normal(350, 500), CYCLIC),
    "cyclic diagonal": ("cyclic", "gram", normal(6000, 500), CYCLIC.diag),
    "sums": ("gegenbauer", "project", lambda: np.tile(np.arange(1.0, 300_001.0), (2, 1)), sums),
    "integrals": ("gegenbauer", "integrate", lambda: np.linspace(-1, 1, 600_000), integrals),
}


@pytest.fixture
def watched(monkeypatch):
    """Makes a function of a driver be called with watches: ``watched(driver, function, make)``."""

    def put(name, function, make):
        real = _dispatch.driver.__wrapped__(name)
        call = getattr(real, function)
        stand_in = types.SimpleNamespace(**vars(real))
        setattr(stand_in, function, lambda *rest, **more: call(*rest, **more | {"watch": make()}))
        monkeypatch.setattr(_dispatch, "driver", lambda n: stand_in if n == name else driver(n))

    driver = _dispatch.driver
    return put


@pytest.mark.parametrize("name", WATCHED)
def test_a_watch_sees_the_work_done_and_changes_nothing(watched, name):
    driver, function, points, call = WATCHED[name]
    want = call(points())
    seen = []  # by call of the driver

    def make():
        seen.append([])
        return seen[-1].append

    watched(driver, function, make)
    np.testing.assert_array_equal(call(points()), want)
    assert any(seen)
    for fractions in seen:
        assert fractions == sorted(fractions)
        assert all(0 <= x <= 1 for x in fractions)


@pytest.mark.parametrize("name", WATCHED)
def test_what_a_watch_raises_ends_the_work(watched, name):
    driver, function, points, call = WATCHED[name]
    error, fractions = InterruptedError("enough"), []

    def stop(fraction):
        fractions.append(fraction)
        raise error

    watched(driver, function, lambda: stop)
    with pytest.raises(InterruptedError) as caught:
        call(points())
    assert caught.value is error
    assert len(fractions) == 1
