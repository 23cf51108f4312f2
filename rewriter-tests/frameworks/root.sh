#!/bin/bash
# Folders with AMD's ROCm of other Debian releases, in which frameworks run (docs/guide/frameworks.md). Nothing is
# installed on the machine.
#
#   root.sh make sid FOLDER                  fetch and unpack the packages of a suite, if FOLDER does not have them
#   root.sh make experimental FOLDER         the same with newer libraries
#   root.sh enter FOLDER COMMAND ARGUMENT…   run a command in it; /wavetap has the folder of WAVETAP, the command
#   root.sh packages sid                     list what is installed
#
# Needs root, apt and dpkg of Debian, and 10 GB for each folder. FOLDER/root/srv is the current folder of what is
# entered.
set -euo pipefail

die() {
    echo "root.sh: $*" >&2
    exit 1
}

# The compilers, the libraries, and what checks them.
packages() {
    local common="bash coreutils dash findutils grep sed file hipcc g++ python3.13 python3-minimal ca-certificates
        rocminfo rocm-opencl-icd ocl-icd-opencl-dev opencl-c-headers clinfo libamdhip64-dev librocblas-dev
        libhipblas-dev libhipblaslt1 librocsolver-dev libhipsolver-dev librocfft-dev libhipfft-dev librocsparse-dev
        libhipsparse-dev librocrand-dev libhiprand-dev libmiopen-dev rocm-smi"
    case $1 in
        sid) echo $common llama.cpp-tools llama.cpp-tests libggml0-backend-hip migraphx libmigraphx-c-dev ;;
        experimental)
            echo $common librccl-dev librocthrust-dev librocprofiler-register-0 librocm-smi64-1
            ;;
        *) die "$1 is neither sid nor experimental" ;;
    esac
}

# make SUITE FOLDER
make_root() {
    local suite=$1 folder=$2 names mirror keys work options
    names=$(packages "$suite")
    if [ -s "$folder/packages.txt" ] && [ "$(cat "$folder/packages.txt")" = "$names" ]; then
        return
    fi
    # A private configuration of apt, so that the machine's own sources stay as they are; its own mirror, which is
    # checked with Debian's keys.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
        grep -v security | sort -u | head -n 1)
    [ -n "$mirror" ] || die "no Debian mirror in this machine's apt configuration (or no 'apt-get update' yet)"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -s "$keys" ] || die "no $keys: install debian-archive-keyring"
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
    folder=$(cd "$folder" && pwd)
    work=$folder/apt
    # Fetching drops privileges to _apt, which must be able to write here.
    chmod 755 "$folder" "$work"
    chmod -R a+rwX "$work/lists" "$work/cache"
    # Nothing is installed: so all dependencies are fetched, the C library first.
    : >"$work/status"
    echo "deb [signed-by=$keys] $mirror sid main" >"$work/sources.list"
    [ "$suite" = sid ] || echo "deb [signed-by=$keys] $mirror $suite main" >>"$work/sources.list"
    options=(-q -y -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::preferencesparts=/dev/null -o "Dir::State::lists=$work/lists"
        -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" -o APT::Install-Recommends=false
        -t "$suite")
    apt-get "${options[@]}" update >&2 || die "cannot read Debian's package lists"
    # shellcheck disable=SC2086  # one word for each package
    apt-get "${options[@]}" --download-only install $names >&2 || die "cannot fetch the packages"
    # Merged folders: packages hold /lib and /usr/lib, and the second must not replace the first's link.
    mkdir -p "$folder/root/usr/bin" "$folder/root/usr/sbin" "$folder/root/usr/lib" "$folder/root/usr/lib64"
    local one
    for one in bin sbin lib lib64; do ln -sfn "usr/$one" "$folder/root/$one"; done
    for one in "$work"/cache/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$one" | tar -x --keep-directory-symlink -C "$folder/root" ||
            die "$(basename "$one"): cannot be unpacked"
    done
    # An older Python, for packages that have no newer wheels; it uses the newer C library.
    mkdir -p "$work/older" "$folder/root/opt/python3.11"
    chmod a+rwX "$work/older"
    echo "deb [signed-by=$keys] $mirror bookworm main" >>"$work/sources.list"
    apt-get "${options[@]}" update >&2 || die "cannot read Debian's package lists"
    (cd "$work/older" && apt-get "${options[@]}" download python3.11-minimal libpython3.11-minimal \
        libpython3.11-stdlib python3-distutils/bookworm) >&2 || die "cannot fetch Python 3.11"
    for one in "$work"/older/*.deb; do dpkg-deb -x "$one" "$folder/root/opt/python3.11"; done
    # What the packages' own scripts would do.
    ldconfig -r "$folder/root"
    mkdir -p "$folder/root/srv" "$folder/root/wavetap" "$folder/root/dev/shm" "$folder/root/tmp" "$folder/root/proc" \
        "$folder/root/sys" "$folder/root/etc" "$folder/root/root"
    chmod 1777 "$folder/root/tmp"
    echo "root:x:0:0::/root:/bin/bash" >"$folder/root/etc/passwd"
    for one in null zero random urandom; do : >"$folder/root/dev/$one"; done
    (cd "$work/cache/archives" && ls ./*.deb) >"$folder/versions.txt"
    rm -rf "$work/older" "$work/cache"/*.bin "$work/cache/archives"/*.deb
    echo "$names" >"$folder/packages.txt"
}

# enter FOLDER COMMAND…
enter() {
    local folder command
    folder=$(cd "$1" && pwd)
    shift
    [ -d "$folder/root/usr" ] || die "$folder holds no root: root.sh make SUITE $folder"
    command=${WAVETAP:-}
    [ -z "$command" ] || command=$(cd "$(dirname "$command")" && pwd)
    # The mounts are gone when the command ends.
    ROOT=$folder/root COMMAND=$command exec unshare --mount --fork --kill-child -- /bin/bash -c '
        set -e
        for one in null zero random urandom; do mount --bind "/dev/$one" "$ROOT/dev/$one"; done
        mount -t proc proc "$ROOT/proc"
        mount --rbind /sys "$ROOT/sys"
        mount -t tmpfs tmpfs "$ROOT/dev/shm"
        [ -z "$COMMAND" ] || mount --bind -o ro "$COMMAND" "$ROOT/wavetap"
        exec chroot "$ROOT" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
            PATH=/wavetap:/usr/local/bin:/usr/bin:/usr/sbin /bin/bash -c '\''cd /srv && exec "$@"'\'' bash "$@"
    ' bash "$@"
}

case ${1:-} in
    make) [ $# = 3 ] || die "make SUITE FOLDER"; make_root "$2" "$3" ;;
    enter) [ $# -ge 3 ] || die "enter FOLDER COMMAND ARGUMENT…"; shift; enter "$@" ;;
    packages) [ $# = 2 ] || die "packages SUITE"; packages "$2" | tr ' ' '\n' ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" ;;
    *) die "make, enter or packages (--help)" ;;
esac
