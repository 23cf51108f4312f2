#!/bin/sh
# Copies the ROCm device libraries into a folder and adds what Debian's 5.2 release lacks: hip-samples/bitcode.sh FOLDER
# Each addition is a file with one constant that the compiler asks for by name.
set -eu
bitcode=${ROCM_BITCODE:-/usr/lib/x86_64-linux-gnu/amdgcn/bitcode}
cp "$bitcode"/*.bc "$1"
constant() {
    echo "@$2 = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 $3, align 4" |
        "${LLVM_AS:-llvm-as-19}" -o "$1" -
}
constant "$1/oclc_isa_version_942.bc" __oclc_ISA_version 9402
constant "$1/oclc_isa_version_1100.bc" __oclc_ISA_version 11000
constant "$1/oclc_isa_version_1200.bc" __oclc_ISA_version 12000
constant "$1/oclc_abi_version_600.bc" __oclc_ABI_version 600
