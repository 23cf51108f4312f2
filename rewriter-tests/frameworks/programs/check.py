"""What the Python programs of this folder share: one line for each comparison, and the exit code."""

import time

import numpy as np

START = time.time()
wrong = 0


def compare(name, found, expected, relative=1e-4, absolute=1e-5):
    """One comparison: `found` may be anything that numpy understands."""
    global wrong
    found, expected = np.asarray(found), np.asarray(expected)
    right = found.shape == expected.shape and np.allclose(found, expected, rtol=relative, atol=absolute)
    wrong += not right
    print(f"{name}: {'PASS' if right else 'WRONG'}, after {time.time() - START:.1f} s", flush=True)


def attempt(name, function, expected, **limits):
    """A comparison whose function may fail, which does not end the program."""
    global wrong
    try:
        found = function()
    except Exception as error:
        wrong += 1
        print(f"{name}: WRONG, {type(error).__name__}: {str(error)[-600:]}", flush=True)
        return
    compare(name, found, expected, **limits)
