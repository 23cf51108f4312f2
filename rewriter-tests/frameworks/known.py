"""What does not succeed, and how: (suite, row, stage) to a regular expression of what its output or run.py's reason
says. A stage is `run`, `strict` or a probe; `*` is each."""

PAST_LDS = r"LDS access of 8 bytes at offset 0x\w+ is outside the \d+ bytes of the workgroup, in `ds_read2_b64"

KNOWN = {
    # rocFFT's kernels of two dimensions load after the end of their LDS, for lanes that have no element.
    ("sid", "fft-2d", "*"): PAST_LDS,
    ("experimental", "fft-2d", "*"): PAST_LDS,
    # Tensile sets registers to 0 by loads from an address outside of every LDS, 0xf00000; strict mode reports it.
    ("sid", "rocblas", "strict"): r"LDS access of 4 bytes at offset 0xf00000 is outside",
    ("experimental", "rocblas", "strict"): r"LDS access of 4 bytes at offset 0xf00000 is outside",
}
