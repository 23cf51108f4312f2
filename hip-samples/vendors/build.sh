#!/bin/sh
# Compiles rows.h for three vendors, in place of the files that are here: it takes clang 19 with the ROCm device
# libraries, nvcc of CUDA 13 and ocloc. Debug information has the folder that the compilers run in, so they run in one
# with a name that says nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?usage: build.sh EMPTY_FOLDER, for example /rows}
mkdir -p "$folder"
cp "$here"/rows.* "$folder"
cd "$folder"
nvcc -arch=sm_80 -lineinfo -cubin -o rows.sm_80.cubin rows.cu
clang-19 -x hip --offload-arch=gfx90a --offload-device-only --no-gpu-bundle-output -O3 -gline-tables-only \
    -o rows.gfx90a.co rows.hip
ocloc compile -file rows.cl -device pvc -output rows.pvc.zebin -output_no_suffix -options "-I ." \
    -internal_options "-cl-intel-allow-zebin"
cp rows.sm_80.cubin rows.gfx90a.co rows.pvc.zebin "$here"
