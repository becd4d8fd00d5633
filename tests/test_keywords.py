"""Second and old names of keywords and attributes."""

import inspect

import pytest

from kernelcore import _keywords


@_keywords.formerly(lambda name, value: value**2, spread="variance")
@_keywords.synonyms(rng="seed")
def draw(n, seed=None, variance=1.0):
    """Draw numbers."""
    return n, seed, variance


class Solution:
    alpha = 3
    x = _keywords.former_attribute("x", "alpha")


def test_a_synonym_is_the_keyword_itself():
    assert draw(2, rng=5) == draw(2, seed=5) == draw(2, 5) == (2, 5, 1.0)


def test_an_old_keyword_is_converted_and_warns_at_the_call():
    with pytest.warns(DeprecationWarning, match=r"^spread is deprecated; use variance$") as told:
        assert draw(2, spread=3.0) == (2, None, 9.0)
    assert told[0].filename == __file__


def test_an_old_attribute_warns_at_the_place_of_reading():
    with pytest.warns(DeprecationWarning, match=r"^x is deprecated; use alpha$") as told:
        assert Solution().x == 3
    assert told[0].filename == __file__


def test_signature_and_documentation_stay():
    assert list(inspect.signature(draw).parameters) == ["n", "seed", "variance"]
    assert draw.__doc__ == "Draw numbers."
