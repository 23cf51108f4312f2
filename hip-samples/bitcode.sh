#!/bin/sh
# Copies the ROCm device libraries into a folder and adds what Debian's 5.2 release lacks: hip-samples/bitcode.sh FOLDER
# Each addition is a file with one constant that the compiler asks for by name. What newer releases have stays as it is.
set -eu
bitcode=${ROCM_BITCODE:-/usr/lib/x86_64-linux-gnu/amdgcn/bitcode}
cp "$bitcode"/*.bc "$1"
layout=e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128
layout=$layout-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7
# The layout is that of the release's own files: the compiler brings both up to date, and warns of files without one.
constant() {
    [ -e "$1" ] || "${LLVM_AS:-llvm-as-19}" -o "$1" - <<MODULE
target datalayout = "$layout"
target triple = "amdgcn-amd-amdhsa"
@$2 = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 $3, align 4
MODULE
}
for version in 941:9401 942:9402 1100:11000 1101:11001 1102:11002 1103:11003 1150:11500 1151:11501 1152:11502 \
    1200:12000 1201:12001; do
    constant "$1/oclc_isa_version_${version%:*}.bc" __oclc_ISA_version "${version#*:}"
done
constant "$1/oclc_abi_version_600.bc" __oclc_ABI_version 600
