"""What a case is, and how cases.py registers one."""

from dataclasses import dataclass, field

import numpy as np

# Rounding of a type, relative to the largest magnitude of an output: accumulating in another order than numpy's.
HALF, BRAIN, SINGLE, DOUBLE, EXACT = 2e-3, 1.6e-2, 2e-5, 1e-12, 0.0


@dataclass
class Typed:
    """An array of a type that numpy lacks, as its bits."""
    bits: np.ndarray
    type: str


@dataclass
class Pointers:
    """An array of addresses, of other arrays of the case."""
    of: list


@dataclass
class Case:
    fn: object
    grid: tuple
    args: dict
    # By argument: the expected array and the tolerance.
    expected: dict
    warps: int = 4
    stages: int = 2
    options: dict = field(default_factory=dict)
    # More arrays, which only Pointers point to.
    more: dict = field(default_factory=dict)
    # What the kernel prints.
    printed: object = None


def random(seed, *shape, type=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(type)


def integers(seed, low, high, *shape, type=np.int32):
    return np.random.default_rng(seed).integers(low, high, size=shape).astype(type)


def zeros(*shape, type=np.float32):
    return np.zeros(shape, dtype=type)


CASES = {}


def case(*names):
    """Registers a function of a target (and the rest of its name) that makes a case, or none for that target."""
    def register(function):
        for name in names:
            CASES[name] = (lambda f, n: lambda arch: f(arch, n))(function, name)
        return function
    return register


def fp8(arch):
    """The two 8-bit formats of a target's own instructions."""
    return ("fp8e4b8", "fp8e5b16") if arch == "gfx942" else ("fp8e4nv", "fp8e5")
