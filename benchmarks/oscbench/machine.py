"""The conditions of a measurement: the machine, the versions of all software involved, the commit."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import time

from .launch import SOURCE


def output_of(command):
    """The first line that a command prints, or nothing where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else ""


def field_of(path, pattern):
    try:
        with open(path, encoding="utf-8", errors="replace") as text:
            found = re.search(pattern, text.read(), re.MULTILINE)
    except OSError:
        return ""
    return found.group(1).strip().strip('"') if found else ""


def machine():
    memory = field_of("/proc/meminfo", r"^MemTotal:\s*(\d+)")
    return {"processor": field_of("/proc/cpuinfo", r"^model name\s*:\s*(.+)$") or platform.machine(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(int(memory) / (1 << 20), 1) if memory else None,
            "kernel": platform.release(),
            "system": field_of("/etc/os-release", r"^PRETTY_NAME=(.+)$"),
            "load_at_start": round(os.getloadavg()[0], 2)}


def package(name):
    return output_of(["dpkg-query", "-W", "-f", "${Version}\n", name])


def versions(tools, build):
    """Versions by name, of the installed packages only."""
    cache = os.path.join(build, "CMakeCache.txt")
    compiler = field_of(cache, r"^CMAKE_CXX_COMPILER:[A-Z]+=(.+)$")
    info = os.path.join(build, "src", "tools", "osc_info")
    found = {"host MPI (MPICH)": package("libmpich12"),
             "Open MPI": package("libopenmpi3") if tools.openmpi else "",
             "libfabric": package("libfabric1"),
             "UCX": package("libucx0"),
             "compiler": output_of([compiler, "--version"]) if compiler else "",
             "build type": field_of(cache, r"^CMAKE_BUILD_TYPE:[A-Z]+=(.+)$"),
             "libosc": output_of([info, "--version"]) if os.access(info, os.X_OK) else ""}
    return {name: value for name, value in found.items() if value}


def commit():
    """The commit of the source tree, and whether tracked files differ from it."""
    if not shutil.which("git"):
        return {"commit": "", "changed": None}
    git = ["git", "-C", SOURCE]
    return {"commit": output_of(git + ["rev-parse", "HEAD"]),
            "changed": bool(output_of(git + ["status", "--porcelain", "--untracked-files=no"]))}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def portable(command, build):
    """A command as text without this machine's paths."""
    words = [word.replace(os.path.abspath(build), "$BUILD").replace(SOURCE, "$SOURCE") for word in command]
    if os.path.isabs(words[0]):
        words[0] = os.path.basename(words[0])
    return " ".join(shlex.quote(word) if "*" in word else word for word in words)
