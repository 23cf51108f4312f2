"""The rows of run.py: what is run, in which suite, and how its result is judged."""

from dataclasses import dataclass, field

SUITES = ("sid", "experimental")

# Wheels for the root's C library, which is newer than all of these.
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (5, 12, 17, 24, 26, 27, 28, 31, 34, 35, 38, 39)]
PLATFORMS += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64", "any"]

# MIOpen of Debian's sid has the path of a compiler in the folder in which the package was built.
LINKS = {
    "sid": {
        "/build/reproducible-path/miopen-6.4.3+dfsg/build/clang-21": "/usr/lib/llvm-21/bin/clang",
        # TensorFlow loads it by this name, which Debian has in another package only.
        "/usr/lib/x86_64-linux-gnu/libhipblaslt.so": "libhipblaslt.so.1",
    }
}

NUMPY = "numpy==2.4.6"
JAX = [NUMPY, "jax==0.9.1", "jaxlib==0.9.1", "jax-rocm7-pjrt==0.9.1.post6", "jax-rocm7-plugin==0.9.1.post6"]
JAX += ["ml_dtypes==0.5.4", "opt_einsum==3.4.0", "scipy==1.17.1"]
GGUF = [NUMPY, "gguf==0.19.0", "pyyaml==6.0.3", "tqdm==4.67.1", "requests==2.32.5"]
ONNX = [NUMPY, "onnx==1.20.1", "protobuf==6.33.2", "typing_extensions==4.15.0", "ml_dtypes==0.5.4"]
ONNX += ["onnxruntime-rocm==1.22.2.post3", "flatbuffers==25.12.19", "packaging==25.0", "coloredlogs==15.0.1"]
TENSORFLOW = """tensorflow-rocm==2.14.0.600 numpy==1.26.4 absl_py==2.5.1 astunparse==1.6.3 certifi==2026.10.19.post1
    charset_normalizer==3.5.3 flatbuffers==25.12.19 gast==0.7.0 google_pasta==0.2.0 grpcio==1.85.3 h5py==3.16.0
    idna==3.20 keras==2.14.0 libclang==18.1.1 ml_dtypes==0.2.0 opt_einsum==3.4.0 packaging==26.4 protobuf==4.25.9
    requests==2.34.2 setuptools==84.2.1 six==1.17.0 tensorboard==2.14.1 tensorflow_estimator==2.14.0
    tensorflow_io_gcs_filesystem==0.37.1 termcolor==3.3.0 typing_extensions==4.16.0 urllib3==2.8.0
    wrapt==1.14.2""".split()
GGML_TESTS = "/usr/libexec/x86_64-linux-gnu/ggml/test-backend-ops"


@dataclass
class Row:
    """`command` is run in the root's /srv, after `prepare`. Its comparisons are lines that end with a verdict, or its
    output must be that of `reference`. The time limit, in seconds, is four times as long for strict and counted runs.
    Of a row that may be cut there, the comparisons until then count."""

    name: str
    about: str
    command: list
    prepare: list = field(default_factory=list)
    environment: dict = field(default_factory=dict)
    python: list = field(default_factory=list)
    python_version: str = "3.13"
    reference: list = None
    limit: int = 120
    counted: bool = True
    may_be_cut: bool = False
    group: str = ""


def compiled(name, about, source, libraries, arguments=(), **more):
    """A program of ours, compiled in the root with its own compiler."""
    binary = "built-" + source.partition(".")[0]
    flags = ["-O1", "-Iprograms/include", f"programs/{source}", "-o", binary, *(f"-l{one}" for one in libraries), "-lm"]
    if source.endswith(".cpp"):
        compiler = ["hipcc", "-x", "c++", "-D__HIP_PLATFORM_AMD__", *flags, "-lamdhip64"]
    else:
        compiler = ["gcc", *flags]
    return Row(name, about, [f"./{binary}", *arguments], [compiler], **more)


# Debian's MIOpen gives its compiler `-isystem /usr/include`, which hides the C headers from the C++ ones, and has no
# sources of kernels in assembly.
MIOPEN = {"CCC_OVERRIDE_OPTIONS": "# s/^.usr.include$/./", "MIOPEN_DEBUG_GCN_ASM_KERNELS": "0"}

# Stand-ins for libraries that Debian lacks, and where they are found.
def stub(source, name, *arguments):
    command = ["gcc", "-shared", "-fPIC", f"programs/stubs/{source}", "-o", f"stubs/{name}"]
    return [*command, f"-Wl,-soname,{name}", *arguments]


STUBS = [
    ["mkdir", "-p", "stubs"],
    stub("roctracer.c", "libroctracer64.so.4", "-Wl,--version-script,programs/stubs/roctracer.map"),
]
RCCL = [["mkdir", "-p", "stubs"], stub("rccl.c", "librccl.so.1")]
STUBBED = {"LD_LIBRARY_PATH": "/srv/stubs"}


def llama(kind, name):
    """A model of ours with random weights: the same text on the CPU and on the GPU."""
    generate = ["llama-completion", "--no-warmup", "-no-cnv", "-t", "1", "-n", "6", "-p", "hello", "--temp", "0"]
    generate += ["--seed", "1", "-m", f"{name}.gguf"]
    prepare = [
        ["python3.13", "programs/llama_model.py", "model.gguf"],
        ["llama-quantize", "model.gguf", f"{name}.gguf", kind],
    ]
    return Row(
        name,
        f"llama.cpp generates text, weights in {kind}",
        [*generate, "-ngl", "99"],
        prepare,
        python=GGUF,
        reference=[*generate, "--device", "none", "-ngl", "0"],
        group="llama",
    )


def cyllama(layers):
    return ["python3.13", "programs/cyllama_text.py", "llama-f16.gguf", str(layers)]


# Those whose tests end within the limit, or come far.
OPERATORS = """ADD MUL DIV SQR SIN SUM SUM_ROWS MEAN ARGMAX ARGSORT CUMSUM CONT CPY GET_ROWS SET_ROWS MUL_MAT MUL_MAT_ID
    NORM RMS_NORM SOFT_MAX ROPE FLASH_ATTN_EXT CONV_2D IM2COL POOL_2D UPSCALE PAD SILU GELU SWIGLU SSM_CONV SSM_SCAN
    TOP_K"""


def ggml(operator):
    return Row(
        f"ggml-{operator}",
        f"ggml's own tests of {operator}, against its CPU code",
        ["stdbuf", "-oL", GGML_TESTS, "test", "-b", "ROCm0", "-o", operator],
        limit=90,
        counted=False,
        may_be_cut=True,
        group="ggml",
    )


def rows(suite, operators=None):
    result = [
        compiled("pools", "memory in the order of a stream", "pools.cpp", [], counted=False),
        compiled("rocblas", "products of matrices, vectors, a triangular system", "blas.cpp", ["rocblas"]),
        compiled("rocsolver", "linear system, eigenvectors", "solver.cpp", ["rocsolver", "rocblas"]),
        compiled("fft-1d", "hipFFT: lines of 64, 97, 1000 and 4096", "fft.cpp", ["hipfft"], ["1"]),
        compiled("fft-2d", "hipFFT: rectangles", "fft.cpp", ["hipfft"], ["2"]),
        compiled("rocsparse", "sparse matrix by vector", "sparse.cpp", ["rocsparse"]),
        compiled("rocrand", "four generators", "rand.cpp", ["rocrand"]),
        compiled("opencl", "a kernel from source", "opencl.c", ["OpenCL"]),
        compiled("miopen", "activation, pooling, convolution", "miopen.cpp", ["MIOpen"], environment=MIOPEN),
    ]
    if suite == "sid":
        result.append(compiled("migraphx", "a graph for the GPU", "graph.c", ["migraphx_c"]))
        result += [llama("F16", "llama-f16"), llama("Q4_0", "llama-q4_0"), llama("Q4_K_M", "llama-q4_k")]
        result.append(
            Row(
                "cyllama",
                "generates text in Python, with its own build of ggml",
                cyllama(99),
                llama("F16", "llama-f16").prepare,
                python=[*GGUF, "cyllama-rocm==0.2.18"],
                reference=cyllama(0),
            )
        )
        result.append(
            Row(
                "tensorflow",
                "products, sums, a convolution, a traced function",
                ["/opt/python3.11/usr/bin/python3.11", "programs/tensorflow_check.py"],
                RCCL,
                {**STUBBED, **MIOPEN, "PYTHONHOME": "/opt/python3.11/usr"},
                TENSORFLOW,
                "3.11",
            )
        )
        result += [ggml(one) for one in (operators.split(",") if operators else OPERATORS.split())]
    else:
        result.append(
            Row(
                "cupy",
                "arrays, a kernel from source, sort, products, FFT, linear system, random numbers",
                ["python3.13", "programs/cupy_check.py"],
                STUBS,
                {**STUBBED, "CUPY_CACHE_DIR": "/srv/cupy-cache"},
                [NUMPY, "cupy-rocm-7-0==14.2.0"],
                limit=400,
            )
        )
        result.append(
            Row(
                "jax",
                "jitted functions: products, gradient, convolution, sort, FFT, linear system",
                ["python3.13", "programs/jax_check.py"],
                STUBS,
                {**STUBBED, **MIOPEN},
                JAX,
                limit=400,
            )
        )
        result.append(
            Row(
                "onnxruntime",
                "a model: convolution, pooling, product, softmax",
                ["python3.13", "programs/onnx_check.py", "small.onnx", "ROCMExecutionProvider"],
                [*STUBS, ["python3.13", "programs/onnx_model.py", "small.onnx"]],
                {**STUBBED, **MIOPEN},
                ONNX,
            )
        )
    return result
