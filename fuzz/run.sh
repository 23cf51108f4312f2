#!/bin/bash
# Runs fuzz targets with coverage feedback, on the stable compiler. `fuzz/run.sh --help` says how.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<HELP
usage: fuzz/run.sh [--minutes N] [TARGET...]

Builds the fuzzer and runs each TARGET for N minutes (60); all if none is given:
bundles code_objects instructions rewrite profiles samples.
Stops at the first finding and exits with 1; the input is in target/fuzz/findings. Copied to fuzz/inputs/TARGET, it is
tried by every run of the tests. Inputs that reached new code stay in target/fuzz/corpus and are used again.

Needs Rust and a C++ compiler. With Debian's libclang-rt-19-dev LLVM's driver need not be compiled.
HELP
}

minutes=60
targets=()
while [ $# -gt 0 ]; do
    case $1 in
        --minutes) [ $# -ge 2 ] || { usage >&2; exit 2; }; minutes=$2; shift 2 ;;
        -h | --help) usage; exit 0 ;;
        -*) echo "run.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
        *) targets+=("$1"); shift ;;
    esac
done
case $minutes in '' | *[!0-9]*) echo "run.sh: --minutes $minutes is no number" >&2; exit 2 ;; esac

host=$(rustc -vV | sed -n 's/^host: //p')
folder=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/fuzz
driver=/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-${host%%-*}.a
[ -f "$driver" ] && export CUSTOM_LIBFUZZER_PATH=$driver

# A folder of its own and --target: the flags must not reach build scripts, nor cause other builds to start over.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS="${RUSTFLAGS:-} --cfg fuzzing $coverage" \
    cargo build --locked --profile checked --target "$host" --target-dir "$folder/build" \
    -p wavetap-fuzz --features libfuzzer --bin fuzz
programs=$folder/build/$host/checked
cargo run --locked --quiet -p wavetap-fuzz --bin seeds -- "$folder/seeds" >"$folder/targets"
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cut -d' ' -f1 "$folder/targets")

mkdir -p "$folder/findings"
for target in "${targets[@]}"; do
    longest=$(sed -n "s/^$target //p" "$folder/targets")
    [ -n "$longest" ] || { echo "run.sh: there is no target $target" >&2; exit 2; }
    mkdir -p "$folder/corpus/$target"
    echo "== $target: $minutes minutes"
    WAVETAP_FUZZ_TARGET=$target "$programs/fuzz" -max_total_time=$((minutes * 60)) -max_len="$longest" -timeout=60 \
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$folder/findings/$target-" \
        "$folder/corpus/$target" "$folder/seeds/$target" || { echo "run.sh: $target found something" >&2; exit 1; }
done
