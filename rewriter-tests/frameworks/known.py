"""What does not succeed, and how: (suite, row, stage) to a regular expression of what its output or run.py's reason
says. A stage is `run`, `strict` or a probe; `*` is each."""

PAST_LDS = r"LDS access of 8 bytes at offset 0x\w+ is outside the \d+ bytes of the workgroup, in `ds_read2_b64"

KNOWN = {
    # rocFFT's kernels of two dimensions load after the end of their LDS, for lanes that have no element.
    ("sid", "fft-2d", "strict"): PAST_LDS,
    ("experimental", "fft-2d", "strict"): PAST_LDS,
    # The kernel of `gemm_ex`: whether the report is right is not known.
    ("sid", "rocblas", "strict"): r"v12 is used as data for memory that others see, but has bits that were never",
}
