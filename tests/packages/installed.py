"""What cmake --install leaves works in the folder that the prefix is moved to, and cmake --build --target uninstall removes it.

usage: installed.py BUILD SOURCE MPIEXEC MPICC

A program that is built against the moved prefix by pkg-config and by CMake needs libosc.so.1 and reaches it; oscrun and osc_info
find the libraries. No installed file names the folder of the build or the first prefix, and every link of the installed documents
leads somewhere. Exit status: 0, or 1 with what is wrong.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SECONDS = 120
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(histogram C)
find_package(MPI REQUIRED COMPONENTS C)
find_package(osc 0.1 REQUIRED)
add_executable(histogram histogram.c)
target_link_libraries(histogram PRIVATE osc::osc MPI::MPI_C)
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("OSC_") and name != "LD_PRELOAD"}
wrong = []


def run(*command, folder=None, **settings):
    done = subprocess.run([str(word) for word in command], cwd=folder, env={**ENVIRONMENT, **settings}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        wrong.append(f"{command}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def install(build, prefix):
    run("cmake", "--install", build, "--prefix", prefix)


def files(folder):
    return [path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]


def built_by_pkg_config(mpicc, prefix, source, folder):
    folders = os.pathsep.join(str(path.parent) for path in prefix.rglob("osc.pc"))
    words = run("pkg-config", "--cflags", "--libs", "osc", PKG_CONFIG_PATH=folders).split()
    run(mpicc, "-O1", source / "examples/histogram.c", *words, "-o", folder / "histogram")
    return folder / "histogram"


def built_by_cmake(mpicc, prefix, source, folder):
    folder.mkdir()
    shutil.copy(source / "examples/histogram.c", folder)
    (folder / "CMakeLists.txt").write_text(PROJECT, encoding="utf-8")
    run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DMPI_C_COMPILER={mpicc}")
    run("cmake", "--build", folder / "build")
    return folder / "build/histogram"


def main():
    build, source, mpiexec, mpicc = sys.argv[1:]
    source = pathlib.Path(source)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        first, prefix = scratch / "first/osc", scratch / "moved/osc-here"
        install(build, first)
        prefix.parent.mkdir()
        first.rename(prefix)
        for path in files(prefix):
            if any(str(name).encode() in path.read_bytes() for name in (first, build)):
                wrong.append(f"{path} names {first} or {build}")

        job = ["timeout", "-k", "5", "60", mpiexec, "-n", "2"]
        for make in (built_by_pkg_config, built_by_cmake):
            program = make(mpicc, prefix, source, scratch / make.__name__ if make is built_by_cmake else scratch)
            needed = re.findall(r"\(NEEDED\).*\[(libosc.*)\]", run("readelf", "-d", program))
            said = run(*job, program, OSC_VERBOSE="1")
            if needed != ["libosc.so.1"] or "libosc: rank 0: libosc " not in said:
                wrong.append(f"{make.__name__}: the program needs {needed} and prints {said}")
        # A program that does not link libosc.
        run(mpicc, "-O1", source / "examples/histogram.c", "-o", scratch / "plain")
        said = run(prefix / "bin/oscrun", "-v", *job, scratch / "plain")
        if "libosc: rank 0: libosc " not in said:
            wrong.append(f"oscrun: {said}")
        said = subprocess.run([prefix / "bin/osc_info", "--check", "--json"], env=ENVIRONMENT, capture_output=True, text=True,
                              timeout=SECONDS, check=False).stdout
        states = {finding["check"]: finding["state"] for node in json.loads(said)["nodes"] for finding in node["findings"]}
        if states.get("host_mpi") != "ok":
            wrong.append(f"osc_info: {said}")
        for pages in prefix.glob("share/doc/*"):
            run(sys.executable, source / "tests/docs/links.py", pages)

        removed = scratch / "removed/osc"
        install(build, removed)
        installed = len(files(removed))
        run("cmake", "--build", build, "--target", "uninstall")
        left = list(removed.rglob("*")) if removed.exists() else []
        if installed < 50 or left:
            wrong.append(f"uninstall leaves {left} of {installed} files")
        print(f"{installed} files installed")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
