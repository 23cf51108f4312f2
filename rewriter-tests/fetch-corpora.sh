#!/bin/bash
# Fetches real code that is not ours into target/corpora, for the long tests and the benchmarks: nothing of it is committed.
#   librocrand1 (Debian): code objects of seven targets, 2 MB of code
# Already there: nothing to do.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${CARGO_TARGET_DIR:-target}/corpora
mkdir -p "$folder"
library=$folder/librocrand.so
if [ ! -s "$library" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    # Downloading drops privileges to _apt, which must be able to write here.
    chmod 755 "$work"
    (cd "$work" && apt-get -q download librocrand1 && dpkg-deb -x librocrand1_*.deb tree)
    found=$(find "$work/tree" -name 'librocrand.so.*' -type f | head -n 1)
    [ -n "$found" ] || { echo "fetch-corpora.sh: the package holds no librocrand.so" >&2; exit 1; }
    cp "$found" "$library.part"
    mv "$library.part" "$library"
fi
echo "$(stat -c '%n %s bytes' "$library")"
