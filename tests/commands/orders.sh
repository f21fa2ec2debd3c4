#!/bin/sh
# Runs README's commands in a copy of the tree after each state that an earlier run can leave, and checks that tests/run.sh
# finds the same tests each time and that each command configures its folder. Stand-ins for cmake --build (which touches
# a file only) and ctest (which lists the tests) keep this to a few seconds; .ci/run runs the commands for real.
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
(cd "$tree" && tar cf - --exclude=./build --exclude='./build-*' --exclude=./.git .) | (cd "$copy" && tar xf -)
cd "$copy"
mkdir "$copy/tools"
OSC_REAL_CMAKE=$(command -v cmake)
OSC_REAL_CTEST=$(command -v ctest)
OSC_BUILD_LOG=$copy/builds
export OSC_REAL_CMAKE OSC_REAL_CTEST OSC_BUILD_LOG
cat >tools/cmake <<'TOOL'
#!/bin/sh
case "$*" in *"--target help"*) exec "$OSC_REAL_CMAKE" "$@" ;; esac
[ "$1" = --build ] || exec "$OSC_REAL_CMAKE" "$@"
echo "$*" >>"$OSC_BUILD_LOG"
[ -z "${OSC_KILL_BUILD-}" ] || kill -9 "$PPID"
TOOL
cat >tools/ctest <<'TOOL'
#!/bin/sh
case "$*" in *--show-only*) exec "$OSC_REAL_CTEST" "$@" ;; esac
[ -z "${OSC_RUN_TESTS-}" ] || exec "$OSC_REAL_CTEST" "$@"
exec "$OSC_REAL_CTEST" -N "$@"
TOOL
chmod +x tools/cmake tools/ctest
PATH=$copy/tools:$PATH
unset OSC_TEST_FULL OSC_CONFIGURE CMAKE_GENERATOR
failed=0

complain() {
    echo "commands: $1"
    failed=1
}

# tests AFTER: runs tests/run.sh, which must find as many tests as in a fresh clone.
tests() {
    status=0
    sh tests/run.sh >output 2>&1 || status=$?
    found=$(sed -n 's/^Total Tests: //p' output)
    : "${wanted:=$found}"
    echo "after $1: exit $status, ${found:-0} tests"
    if [ "$status" -ne 0 ] || [ "${found:-0}" -lt 100 ] || [ "$found" != "$wanted" ]; then
        complain "tests/run.sh after $1: wanted $wanted tests"
        tail -20 output
    fi
}

# demo AFTER: examples/demo.sh must configure and build; it then ends, because the stand-in made no library.
demo() {
    : >builds
    sh examples/demo.sh >output 2>&1 || true
    if ! grep -q -- '--preset release .*histogram' builds || ! grep -q 'left no libosc.so' output; then
        complain "examples/demo.sh after $1 did not build"
        cat output
    fi
}

# stale EDIT: changes the cache of the tests' build as sed says.
stale() {
    sed -i "$1" build/release/CMakeCache.txt
}

tests nothing
demo "the tests"
tests "the demo"
stale 's/^OSC_BUILD_TESTS:BOOL=.*/OSC_BUILD_TESTS:BOOL=OFF/; s/^OSC_SANITIZE:STRING=.*/OSC_SANITIZE:STRING=thread/'
tests "a configuration without tests"
stale 's/^CMAKE_GENERATOR:INTERNAL=.*/CMAKE_GENERATOR:INTERNAL=No Such Generator/'
tests "another generator"
stale 's|^CMAKE_HOME_DIRECTORY:INTERNAL=.*|CMAKE_HOME_DIRECTORY:INTERNAL=/nowhere|'
tests "a clone that moved"
OSC_KILL_BUILD=1 sh tests/run.sh >output 2>&1 && complain "a killed build counts as done"
: >builds
tests "a killed build"
grep -q -- '--target clean' builds || complain "what a killed build left is taken as built"
: >builds
tests "a whole build"
grep -q -- '--target clean' builds && complain "a whole build is thrown away"
sh tests/run.sh net >output 2>&1 || complain "no tests of an area"
grep -q "^Total Tests: [1-9]" output || complain "no tests of an area"
grep -q '^OSC_LTO:BOOL=OFF' build/release/CMakeCache.txt || complain "an area waits for link-time optimisation"
tests "an area"
grep -q '^OSC_LTO:BOOL=ON' build/release/CMakeCache.txt || complain "a level after an area lacks link-time optimisation"
sh tests/run.sh no_such_area >output 2>&1 && complain "an area without tests passes"
OSC_RUN_TESTS=1 sh tests/run.sh --gate -R '^no such test$' >output 2>&1 && complain "a run without tests passes"
exit $failed
