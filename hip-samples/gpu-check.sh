#!/bin/bash
# Compares a GPU with the emulator: each sample's output, original and counted in each mode, its launches, its counts,
# what its accesses to memory cost, and how often its blocks and loads are executed where their time is measured. Writes
# one file, gpu-check.txt, or the one that is named. Needs the command, its HIP runtime and the HSA tool, built or
# installed (docs/guide/rocm.md), and ROCm.
#
#     hip-samples/gpu-check.sh [FILE]
#
# WAVETAP names the command (default: target/release/wavetap). WAVETAP_CHECK_OPTIONS takes the place of `--backend gpu`:
# with `--stack rocm` the script itself is tried without a GPU.
set -u
here=$(cd "$(dirname "$0")" && pwd)
wavetap=${WAVETAP:-$here/../target/release/wavetap}
out=${1:-gpu-check.txt}
read -r -a options <<<"${WAVETAP_CHECK_OPTIONS:---backend gpu}"
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
[ -x "$wavetap" ] || { echo "gpu-check.sh: $wavetap is not there: build it, or name it in WAVETAP" >&2; exit 2; }
target=${WAVETAP_CHECK_TARGET:-$(rocminfo 2>/dev/null | sed -n 's/^ *Name: *\(gfx[0-9a-f]*\)$/\1/p' | head -n 1)}
[ -n "$target" ] || { echo "gpu-check.sh: rocminfo names no GPU: name its target in WAVETAP_CHECK_TARGET" >&2; exit 2; }

# Milliseconds since some moment.
now() { echo $(($(date +%s%N) / 1000000)); }

# The counts of a profile, without what depends on where it was made.
counts() {
    python3 - "$1" <<'PYTHON'
import json, sys
profile = json.load(open(sys.argv[1]))
for kernel in profile["kernels"]:
    kernel.pop("work", None)
print(json.dumps([profile["kernels"], profile.get("uncounted"), profile["complete"]], sort_keys=True))
PYTHON
}

# Prints something of each kernel of a report, of the probe that it is for:
# accesses   memory: what each access cost; not where arrays are
# executions time: how many waves ran, and how often they executed each block; not how long that took
# loads      memory-latency: how often each load was executed; not how long that took
# times, latencies: how long it took, to be looked at
of_report() {
    python3 - "$1" "$2" <<'PYTHON'
import json, sys

def accesses(kernel):
    recorded = kernel["recorded"]
    print(kernel["name"], recorded["workgroups"], recorded["executions"], recorded["dropped"])
    for access in kernel["accesses"]:
        print(access["address"], access["instruction"], json.dumps(access.get("measured"), sort_keys=True))

def executions(kernel):
    time = kernel["measured_time"]
    print(kernel["name"], time["waves"]["waves"], [[block["address"], block["executions"]] for block in time["blocks"]])

def loads(kernel):
    loads = kernel["measured_latency"]["loads"]
    print(kernel["name"], [[load["address"], load["kind"], load["executions"], load["idle"]] for load in loads])

def times(kernel):
    time = kernel["measured_time"]
    print("    " + kernel["name"], json.dumps(time["waves"]), "empty", json.dumps(time["empty"]))

def latencies(kernel):
    latency = kernel["measured_latency"]
    print("    " + kernel["name"], "empty", json.dumps(latency["empty"]))
    for load in latency["loads"]:
        print("      " + load["address"], load["instruction"], json.dumps(load))

try:
    report = json.load(open(sys.argv[2]))
except (OSError, ValueError):
    sys.exit("no report " + sys.argv[2])
for kernel in report["kernels"]:
    globals()[sys.argv[1]](kernel)
PYTHON
}

differ=0
check() {
    local what=$1 expected=$2 found=$3
    if cmp -s "$expected" "$found"; then echo "  $what: the same"; return; fi
    echo "  $what: DIFFERENT"
    diff "$expected" "$found" | head -n 20 | cut -c 1-400
    differ=$((differ + 1))
}

# Compares what a profile with these options has on both, the first argument being its name.
profile() {
    local name=$1 start
    shift
    "$wavetap" profile --backend emulator --stack hip --target "$target" "$@" --force -o "$work/emulated" \
        --report "$work/report" -- "$sample" >/dev/null 2>&1
    counts "$work/emulated" >"$work/expected-counts"
    rm -f "$work/real"
    start=$(now)
    "$wavetap" profile "${options[@]}" "$@" --force -o "$work/real" --report "$work/report" \
        -- "$sample" >"$work/out" 2>"$work/said"
    echo "  $name: exit code $?, $(($(now) - start)) ms"
    grep '^wavetap:' "$work/said" | grep -v "running on this machine's GPU" | head -n 5
    check "output" "$work/expected" "$work/out"
    { [ -f "$work/real" ] && counts "$work/real" || echo "no profile"; } >"$work/found-counts"
    check "counts" "$work/expected-counts" "$work/found-counts"
}

# Compares what a probe measures on both, as `of_report` prints it.
probe() {
    local name=$1 print=$2 start
    "$wavetap" profile --backend emulator --stack hip --target "$target" --probe "$name" --force --format json \
        --report "$work/emulated" -- "$sample" >/dev/null 2>&1
    of_report "$print" "$work/emulated" >"$work/expected-counts" 2>&1
    rm -f "$work/report"
    start=$(now)
    "$wavetap" profile "${options[@]}" --probe "$name" --force --format json --report "$work/report" \
        -- "$sample" >"$work/out" 2>"$work/said"
    echo "  $name: exit code $?, $(($(now) - start)) ms"
    grep '^wavetap:' "$work/said" | grep -v "running on this machine's GPU" | head -n 5
    check "output" "$work/expected" "$work/out"
    of_report "$print" "$work/report" >"$work/found-counts" 2>&1
    check "$print" "$work/expected-counts" "$work/found-counts"
}

{
    echo "wavetap gpu-check, $("$wavetap" --version), $target, options: ${options[*]}"
    uname -r
    cat /opt/rocm/.info/version 2>/dev/null || dpkg-query -W libhsa-runtime64-1 libamdhip64-5 2>/dev/null
    for sample in "${WAVETAP_CHECK_SAMPLES:-$here/bin}"/*; do
        [ -x "$sample" ] || continue
        echo "$(basename "$sample")"
        "$wavetap" run --backend emulator --stack hip --target "$target" -- "$sample" \
            >"$work/expected" 2>"$work/said" ||
            { echo "  not on the emulator: $(head -n 1 "$work/said")"; continue; }
        start=$(now)
        "$wavetap" run "${options[@]}" -- "$sample" >"$work/out" 2>"$work/said"
        echo "  original: exit code $?, $(($(now) - start)) ms"
        grep '^wavetap:' "$work/said" | grep -v "running on this machine's GPU" | head -n 5
        check "output" "$work/expected" "$work/out"
        profile launches --probe none
        for mode in lds global register; do
            profile $mode --counters $mode
        done
        probe memory accesses
        probe time executions
        of_report times "$work/report" 2>/dev/null
        probe memory-latency loads
        of_report latencies "$work/report" 2>/dev/null
    done
    echo "$differ different"
    [ "$differ" = 0 ]
} >"$out"
code=$?
tail -n 1 "$out"
echo "gpu-check.sh: $out has all of it"
exit $code
