#!/bin/bash
# Runs every check of the project. `./test.sh --help` says what there is.
set -uo pipefail
cd "$(dirname "$0")" || exit 1

# What the tests compile with, disassemble with and link against. Debian 12's names.
packages="clang-19 lld-19 llvm-19 libclang-rt-19-dev clang-tools-19 rocm-device-libs libamdhip64-dev libomp-19-dev"
packages="$packages patchelf chromium cmake lcov python3-venv"

usage() {
    cat <<HELP
usage: ./test.sh [--full] [--no-install]

Checks formatting, lints and documentation, then runs all tests. Needs Rust with rustfmt and clippy, and these Debian
packages, which are installed with apt where they are missing (as root or through sudo):

    $packages

DuckDB, which reads what is exported, is fetched from PyPI into target/engines.

  --full        also the long tests: more seeds, whole libraries of 27 targets (fetches 65 MB of them first, with apt
                and with pip), 10 million random words for each target, every variant of the samples, the test kernels
                on every target that the compiler knows, Triton's kernels (docs/guide/triton.md; fetched with pip),
                Polars and Spark beside DuckDB, the documentation as a book (installs mdbook with cargo where it is
                missing, 2 to 5 minutes) and, if WAVETAP_PROGRAMS names their folder (docs/results/programs.md),
                public programs; and packages, installed in a bare Debian 12 (as root)
  --no-install  install nothing: fail when a package is missing
HELP
}

full=0
install=1
for option in "$@"; do
    case $option in
        --full) full=1 ;;
        --no-install) install=0 ;;
        -h | --help) usage; exit 0 ;;
        *) echo "test.sh: unknown option $option" >&2; usage >&2; exit 2 ;;
    esac
done

die() {
    echo "test.sh: $*" >&2
    exit 1
}

# --- the Rust toolchain
command -v cargo >/dev/null || die "cargo is not on the PATH: install Rust (rustup)"
cargo fmt --version >/dev/null 2>&1 || die "this Rust toolchain has no rustfmt: run 'rustup component add rustfmt'"
cargo clippy --version >/dev/null 2>&1 || die "this Rust toolchain has no clippy: run 'rustup component add clippy'"

# --- the packages
# What fetches the libraries of the long tests, what Spark runs on, ranks, and a bare Debian.
if [ "$full" = 1 ]; then
    python3 -m pip --version >/dev/null 2>&1 || packages="$packages python3-pip"
    command -v java >/dev/null || packages="$packages openjdk-17-jre-headless"
    packages="$packages openmpi-bin slurm-wlm munge debootstrap"
fi
installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
command -v dpkg-query >/dev/null ||
    die "this is not Debian or one of its children; install by hand what --help lists and adapt"
missing=
for package in $packages; do
    installed "$package" || missing="$missing $package"
done
if [ -n "$missing" ]; then
    [ "$install" = 1 ] || die "these packages are missing:$missing"
    root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "not root and no sudo, so these packages cannot be installed:$missing"
        root=sudo
    fi
    echo "test.sh: installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    $root apt-get update -q || die "apt-get update failed"
    # shellcheck disable=SC2086  # one word for each package
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing ||
        die "apt-get could not install$missing"
fi

# --- the checks, each timed; a failure does not hide the later ones
failed=
work=$(mktemp -d) || die "no folder for temporary files"
trap 'rm -rf "$work"' EXIT
: >"$work/steps"

# Runs a command, and adds a row with its name, seconds and seconds of CPU to the steps.
timed() {
    local name=$1 status TIMEFORMAT='%1R %1U %1S'
    shift
    { time "$@" 2>&3; } 3>&2 2>"$work/time"
    status=$?
    awk -v name="$name" '{ printf "%s\t%.1f\t%.1f\n", name, $1, $2 + $3 }' "$work/time" >>"$work/steps"
    return $status
}

step() {
    local name=$1 start=$SECONDS
    shift
    echo "== $name: $*"
    if timed "$name" "$@"; then
        echo "== $name: ok, $((SECONDS - start)) s"
    else
        echo "== $name: FAILED, $((SECONDS - start)) s" >&2
        failed="$failed $name"
    fi
}

# All tests; what they write goes to a file, too.
run_tests() {
    cargo test --workspace --no-fail-fast --locked 2>&1 | tee "$work/tests"
    return "${PIPESTATUS[0]}"
}

# What each step and each test program cost, the longest program first.
table() {
    awk -F '\t' 'BEGIN { printf "%-44s %9s %9s\n", "step", "seconds", "of CPU" }
        { printf "%-44s %9s %9s\n", $1, $2, $3 }' "$work/steps"
    awk -f rewriter-tests/test-times.awk "$work/tests" | sort -t "$(printf '\t')" -k2,2gr -k1,1 |
        awk -F '\t' 'function row(a, b, c, d, e) { printf "%-44s %9s %7s %8s %7s\n", a, b, c, d, e }
            BEGIN { print ""; row("test program", "seconds", "passed", "ignored", "failed") }
            { row($1, $2, $3, $4, $5) }'
}

if [ "$full" = 1 ]; then
    # Twenty seeds; 16 words for each row of the instruction tables.
    export WAVETAP_FULL_TESTS=1 WAVETAP_SEEDS=20 WAVETAP_ISA_FILLINGS=16
    step corpora rewriter-tests/fetch-corpora.sh
    # Fetches LLVM's headers; without them the test that asks LLVM which registers instructions access says that it was
    # skipped.
    rewriter-tests/llvm-access/build.sh || echo "test.sh: llvm-access was not built" >&2
fi
if [ "$full" = 1 ]; then
    # Fetches the pinned Triton from PyPI.
    step triton rewriter-tests/triton/run.sh
fi
if [ "$full" = 1 ]; then
    # Tests check links and that every page is in the book; this checks that mdBook agrees.
    if ! command -v mdbook >/dev/null; then
        if [ "$install" = 1 ]; then
            echo "test.sh: installing mdbook below target/tools"
            step mdbook cargo install mdbook --locked --no-default-features --root target/tools
        fi
        PATH=$PWD/target/tools/bin:$PATH
    fi
    step book mdbook build docs
fi
if [ "$install" = 1 ]; then
    step engines rewriter-tests/engines.sh $([ "$full" = 1 ] && echo --all)
    # From here on it is a failure if they are not there.
    export WAVETAP_ENGINES=$PWD/target/engines/bin/python
fi
step fmt cargo fmt --all --check
step clippy cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
# The oldest compiler that Cargo.toml promises.
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if rustup toolchain list 2>/dev/null | grep -q "^$oldest[.-]"; then
    step "Rust $oldest" cargo "+$oldest" check --quiet --workspace --locked --target-dir target/oldest
else
    echo "== Rust $oldest: skipped, it is not installed (rustup toolchain install $oldest --profile minimal)"
fi
RUSTDOCFLAGS="-D warnings" step doc cargo doc --quiet --workspace --no-deps --locked
if [ "$full" = 1 ]; then
    step "cargo install" cargo install --quiet --locked --path cli --features bundled --root target/installed
    step installed env HOME="$work" XDG_CACHE_HOME= target/installed/bin/wavetap profile hip-samples/bin/divergence
    # Installs what people install, where there is nothing else. Needs root.
    if [ "$(id -u)" = 0 ]; then
        step packages ./package.sh --try
    else
        echo "== packages: skipped, not root (sudo ./package.sh --try)"
    fi
fi
if [ "$full" = 1 ] && [ -n "${WAVETAP_PROGRAMS:-}" ]; then
    step "public programs" cargo test --release --locked -p rewriter-tests --test public_programs
    # Not again, and slower, among all tests.
    unset WAVETAP_PROGRAMS
fi
if [ "$full" = 1 ]; then
    WAVETAP_RANDOM_WORDS=10000000 step "random words" cargo test --profile checked --locked -p rewriter-tests \
        --test random_words -- --nocapture
fi
# Last, so that the output ends with the test summaries, and what everything cost.
timed test run_tests
tests=$?
mkdir -p target
echo
table | tee target/ci-times.txt

[ -z "$failed" ] || die "failed before the tests:$failed"
exit $tests
