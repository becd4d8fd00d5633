"""Random calls, by Hypothesis: a right value or an error of ours, and nothing else.

::

    strategies ──▶ @fuzzed ──▶ a few hundred cases, always the same ones
                          └──▶ KERNELCORE_FUZZ=SECONDS: others, for that long, until one fails

What fails is printed in its smallest form. Fix it, and keep it as an ``@example``, or as a test of
its own beside those of the room.
"""

import os
import time
import traceback
import warnings
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, given, settings

import kernelcore as kc

PACKAGE = str(Path(kc.__file__).parent)
SECONDS = float(os.environ.get("KERNELCORE_FUZZ", "0"))
KINDS = (TypeError, ValueError, ArithmeticError, MemoryError)
TESTS = []

# What NumPy says of its own arithmetic: a value that nobody has thought of.
NUMPY = ("encountered in", "divide by zero", "ill-conditioned", "Mean of empty", "invalid value")

settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("long", deadline=None, print_blob=True)
settings.load_profile("long" if SECONDS else "ci")


def fuzzed(examples, *strategies, **named):
    """Decorate a test of random values: so many cases, or its share of ``KERNELCORE_FUZZ``."""

    def decorated(test):
        some = settings(max_examples=examples, suppress_health_check=list(HealthCheck))
        inner = some(given(*strategies, **named)(test))
        TESTS.append(inner)

        def run():
            end = time.monotonic() + SECONDS / len(TESTS)
            inner()
            while time.monotonic() < end:
                inner()

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorated


def attempt(call, kinds=KINDS):
    """Return what a call returns, or None where it is refused as it should be.

    An error of ours is raised in the package, says what something must be, and is no surprise of
    another library; a warning is one of ours.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = call()
        except kinds as error:
            if isinstance(error, OSError) and error.filename is not None:
                return None  # the system names the file that is not there
            found, refusal = None, error
        else:
            refusal = None
    if refusal is not None:
        last, told = traceback.extract_tb(refusal.__traceback__)[-1], repr(refusal)
        assert last.filename.startswith(PACKAGE), told
        assert " must " in told, told
        hypothesis.event(f"refused: {type(refusal).__name__}")
        return None
    for warning in told:
        assert not any(words in str(warning.message) for words in NUMPY), warning.message
    return found
