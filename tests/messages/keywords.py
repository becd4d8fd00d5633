"""Keywords by two names at once."""

from kernelcore import _keywords

from . import Case


@_keywords.synonyms(rng="seed")
def draw(seed=None):
    return seed


CASES = [
    Case(
        TypeError,
        "draw must not be given both seed and rng: they are one argument",
        lambda: draw(seed=1, rng=1),
    ),
]
