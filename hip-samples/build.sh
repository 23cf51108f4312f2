#!/bin/sh
# Builds every sample for three targets from source:
#     hip-samples/build.sh [--nine | --memory | --steps | --counts | --summary | --latency | --leo | --check]
#         [-o FOLDER] [NAME...] [-- EXTRA COMPILER FLAGS]
# --nine: the programs of the benchmark `nine` instead, for its targets, without line tables and host symbols.
# --memory: the programs whose accesses `wavetap memory` is tested with, for four targets.
# --steps: a program that is made better step by step, for two targets.
# --counts: kernels whose operations and bytes follow from the source, for four targets.
# --summary: kernels that a summary is tested with, for gfx90a.
# --latency: a pointer chase, whose loads `--probe memory-latency` is tested with, for two targets.
# --leo: programs after LEO's table of an MI300A, for its target; the test `leo_table` builds them.
# --check: programs with a mistake and without it, for five targets or those that a line `// targets:` names, with line
#     tables of the host's code, too; the test `check_zoo` builds them.
# Needs clang++-19, clang-tools-19, lld-19, llvm-19, rocm-device-libs and libamdhip64-dev (Debian or Ubuntu package
# names). The result has no path of this machine in it, so two builds with the same packages are equal byte for byte.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sources=$here/src
out=$here/bin
targets='gfx90a gfx906 gfx942'
common='-O2 -Xarch_device -gline-tables-only'
names=
while [ $# -gt 0 ]; do
    case $1 in
        --nine | --memory | --steps | --counts | --summary | --latency | --leo | --check)
            folder=${1#--}
            sources=$here/$folder
            out=$here/$folder/bin
            case $folder in
                nine) targets='gfx90a gfx906 gfx1030' common='-O3 -s' ;;
                memory) targets='gfx90a gfx942 gfx1030 gfx1100' ;;
                steps | latency) targets='gfx90a gfx1100' ;;
                counts)
                    targets='gfx90a gfx942 gfx1030 gfx1100'
                    common="$common -Xarch_device -fno-slp-vectorize"
                    ;;
                summary) targets=gfx90a ;;
                leo) targets=gfx942 ;;
                check) targets='gfx90a gfx942 gfx1030 gfx1100 gfx1201' common='-O2 -gline-tables-only' ;;
            esac
            shift
            ;;
        -o) case $2 in /*) out=$2 ;; *) out=$PWD/$2 ;; esac; shift 2 ;;
        --) shift; break ;;
        *) names="$names ${1%.hip}"; shift ;;
    esac
done
cd "$sources"
[ -n "$names" ] || names=$(ls *.hip | sed 's/\.hip$//')
mkdir -p "$out"

clang=${CLANGXX:-clang++-19}
library=$(mktemp -d)
trap 'rm -rf "$library"' EXIT
"$here/bitcode.sh" "$library"

for name in $names; do
    own=$(sed -n 's|^// targets: ||p' "$name.hip")
    architectures=
    for target in ${own:-$targets}; do
        architectures="--offload-arch=$target $architectures"
    done
    case $name in
        o0) flags='-O0 -Xarch_device -g -ffunction-sections -Xoffload-linker --gc-sections' ;;
        *) flags=$common ;;
    esac
    "$clang" -w -x hip -std=c++17 $flags --rocm-device-lib-path="$library" \
        -fdebug-compilation-dir=. -ffile-prefix-map="$PWD"=. -ffile-prefix-map=/usr/= -ffile-prefix-map="$library"= \
        -cuid="$name" "$name.hip" -o "$out/$name" -lamdhip64 $architectures "$@"
done
