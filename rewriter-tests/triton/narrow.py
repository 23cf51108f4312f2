"""Narrow formats of numbers in numpy, which has none of them: what cases.py expects is computed with these."""

import numpy as np


def to_bf16(values):
    """The bits of the nearest bfloat16, ties to even. No NaN comes here."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


# Exponent bits, mantissa bits, bias, and whether there are infinities (IEEE), only NaN (all ones), or neither but the
# code of minus zero as NaN: OCP's 8-bit formats and, with "fnuz", those of gfx94x.
FORMATS = {
    "fp8e4nv": (4, 3, 7, "nan"),
    "fp8e5": (5, 2, 15, "ieee"),
    "fp8e4b8": (4, 3, 8, "fnuz"),
    "fp8e5b16": (5, 2, 16, "fnuz"),
    "fp4e2m1": (2, 1, 1, "finite"),
}


def values_of(name):
    """The value of every code of a format."""
    exponents, mantissas, bias, kind = FORMATS[name]
    size = 1 << (1 + exponents + mantissas)
    values = np.zeros(size, dtype=np.float64)
    for code in range(size):
        exponent = (code >> mantissas) & ((1 << exponents) - 1)
        mantissa = code & ((1 << mantissas) - 1)
        if exponent == 0:
            value = mantissa * 2.0 ** (1 - bias - mantissas)
        else:
            value = (1 + mantissa / (1 << mantissas)) * 2.0 ** (exponent - bias)
        top = exponent == (1 << exponents) - 1
        if kind == "ieee" and top:
            value = np.inf if mantissa == 0 else np.nan
        elif kind == "nan" and top and mantissa == (1 << mantissas) - 1:
            value = np.nan
        values[code] = -value if code >= size // 2 else value
        if kind == "fnuz" and code == size // 2:
            values[code] = np.nan
    return values


def decode(name, codes):
    return values_of(name)[np.asarray(codes).astype(np.int64)].astype(np.float32)


def encode(name, values):
    """The codes of the nearest finite values, ties to even codes."""
    table = values_of(name)
    usable = np.isfinite(table) & ~((np.arange(len(table)) == len(table) // 2))
    codes = np.nonzero(usable)[0]
    distance = np.abs(table[codes][None, :] - np.asarray(values, dtype=np.float64).reshape(-1, 1))
    nearest = distance == distance.min(axis=1, keepdims=True)
    even = nearest & (codes[None, :] % 2 == 0)
    chosen = np.where(even.any(axis=1), even.argmax(axis=1), nearest.argmax(axis=1))
    result = codes[chosen].astype(np.uint8)
    if FORMATS[name][3] != "fnuz":
        negative_zero = (table[result] == 0) & np.signbit(np.asarray(values, dtype=np.float64).reshape(-1))
        result = np.where(negative_zero, len(table) // 2, result).astype(np.uint8)
    return result.reshape(np.shape(values))


def philox(seed, counters):
    """The first word of Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3)."""
    c = [np.asarray(counters, dtype=np.uint64) & 0xFFFFFFFF] + [np.zeros(len(counters), dtype=np.uint64)] * 3
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first = c[0] * np.uint64(0xD2511F53)
        second = c[2] * np.uint64(0xCD9E8D57)
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ key[0],
            second & low,
            (first >> np.uint64(32)) ^ c[3] ^ key[1],
            first & low,
        ]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return c[0].astype(np.uint32)
