"""osc_info --check finds what is made to fail, each with its advice, on one machine and in jobs.

usage: check.py --mpiexec MPIEXEC [--openmpi MPIEXEC] --without PROGRAM OSC_INFO"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("--mpiexec", required=True)
parser.add_argument("--openmpi", default="")
parser.add_argument("--without", required=True)
parser.add_argument("info")
options = parser.parse_args()
# One provider, so that a run takes a fraction of a second.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("OSC_", "PMI", "MPI_LOCAL", "SLURM", "OMPI_"))}
CHECKS = {"memfd", "proc_fd", "process_vm", "dev_shm", "huge_pages", "locked_memory", "descriptors", "namespaces", "container",
          "cores", "provider", "interface", "network", "host_mpi"}
wrong = []


def check(what, holds, about=""):
    if not holds:
        wrong.append(f"{what} {about}")


def run(command, prepare=None, **settings):
    return subprocess.run(command, env={**ENVIRONMENT, "OSC_OFI_PROVIDER": "tcp;ofi_rxm", **settings}, capture_output=True,
                          text=True, timeout=90, preexec_fn=prepare)


def report(name, command, prepare=None, **settings):
    """The parsed report; its form, exit status and advice are as documented."""
    done = run(command, prepare, **settings)
    try:
        found = json.loads(done.stdout)
    except ValueError as error:
        check(f"{name}: no JSON ({error}), exit {done.returncode}:", False, done.stdout + done.stderr)
        return {"nodes": [], "job": [], "ways": []}
    findings = all_of(found)
    problems = sum(finding["state"] == "problem" for finding in findings)
    check(f"{name}: count of problems", found["problems"] == problems, str(found))
    check(f"{name}: exit {done.returncode} with {problems} problems", done.returncode == (1 if problems else 0), done.stderr)
    for finding in findings:
        check(f"{name}: advice of", (finding["advice"] == "") == (finding["state"] == "ok"), str(finding))
    return found


def all_of(found):
    return [finding for node in found["nodes"] for finding in node["findings"]] + found["job"]


def has(name, found, which, state, *words):
    """A finding of that state whose text or advice has all words."""
    matching = [f for f in all_of(found) if f["check"] == which and f["state"] == state]
    check(f"{name}: {which} is a {state} with {words}:",
          any(all(word in f["text"] + f["advice"] for word in words) for f in matching),
          str([f for f in all_of(found) if f["check"] == which]))


def local(name, *prefix, prepare=None, **settings):
    return report(name, [*prefix, options.info, "--check", "--json"], prepare, **settings)


def job(name, *words, **settings):
    return report(name, [options.mpiexec, "-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1", *words], **settings)


INFO = [options.info, "--check", "--json"]

# The machine as it is.
plain = local("plain")
check("plain: checks", CHECKS <= {f["check"] for f in all_of(plain)}, str(CHECKS - {f["check"] for f in all_of(plain)}))
for which in ("memfd", "descriptors", "network", "host_mpi"):
    has("plain", plain, which, "ok")
text = run([options.info, "--check"])
check("text: head", text.stdout.startswith("libosc ") and ": health check\n" in text.stdout, text.stdout)
check("text: a line for each check", all(f" {which} " in text.stdout for which in CHECKS), text.stdout)
for arguments in (["--check", "--nonsense"], ["--json"], ["--check", "--json", "--json"]):
    check(f"{arguments}: exit 2", run([options.info, *arguments]).returncode == 2)

# What is made to fail.
if run([options.without, "memfd", "true"]).returncode == 0:
    has("process_vm", local("process_vm", options.without, "process_vm"), "process_vm", "problem", "process_vm_readv",
        "MPI_Win_allocate")
    has("memfd", local("memfd", options.without, "memfd"), "memfd", "problem", "allow memfd_create")
    local("clone", options.without, "clone")  # no child and no thread can start: the check ends all the same


def lower_limits():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))


low = local("limits", prepare=lower_limits, OSC_FENSE="deferred", OSC_OFI_IFACE="nonsense0")
has("limits", low, "descriptors", "problem", "64", "ulimit -n")
has("limits", low, "locked_memory", "note", "64 KiB", "ulimit -l")
has("limits", low, "options", "problem", "OSC_FENSE", "did you mean OSC_FENCE?")
has("limits", low, "interface", "problem", "nonsense0", "OSC_OFI_IFACE", "lo")
has("provider", local("provider", OSC_OFI_PROVIDER="nonsense"), "network", "problem", "nonsense", "fi_info")
core = min(os.sched_getaffinity(0))
one = local("one core", prepare=lambda: os.sched_setaffinity(0, {core}))
has("one core", one, "cores", "note" if os.sysconf("SC_NPROCESSORS_ONLN") > 1 else "ok", "1 of")
SMALL = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$0" "$@"']
if run([*SMALL, "true"]).returncode == 0:
    has("small /dev/shm", local("small /dev/shm", *SMALL), "dev_shm", "problem", "1 MiB", "--shm-size")
APART = ["unshare", "--pid", "--fork", "--mount-proc"]
if run([*APART, "true"]).returncode == 0:
    has("PID namespace", local("PID namespace", *APART), "namespaces", "note", "--pid=host")
if options.openmpi:
    libraries = [f["data"]["path"] for f in all_of(plain) if f["check"] == "host_mpi"]
    HIDDEN = ["unshare", "--mount", "sh", "-c", f'mount --bind /dev/null "$(readlink -f {libraries[0]})" && exec "$0" "$@"']
    if run([*HIDDEN, "true"]).returncode == 0:
        has("Open MPI alone", local("Open MPI alone", *HIDDEN), "host_mpi", "ok", "ABI of Open MPI")
    of_openmpi = report("job of Open MPI", [options.openmpi, "--oversubscribe", "-n", "2", *INFO], OMPI_ALLOW_RUN_AS_ROOT="1",
                        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    check("job of Open MPI: nodes", [n["ranks"] for n in of_openmpi["nodes"]] == [[0, 1]], str(of_openmpi))
    has("job of Open MPI", of_openmpi, "host_mpi", "ok", "ABI of Open MPI")
    has("job of Open MPI", of_openmpi, "shared_memory", "ok", "ranks 0-1 share memory")
with tempfile.TemporaryDirectory() as folder:
    # An installation without the library that loads the host MPI, and with a broken network library.
    os.mkdir(os.path.join(folder, "bin"))
    copy = shutil.copy(options.info, os.path.join(folder, "bin"))
    with open(os.path.join(folder, "libosc_ofi.so"), "w", encoding="utf-8"):
        pass
    broken = report("broken installation", [copy, "--check", "--json"])
    has("broken installation", broken, "host_mpi", "problem", "libosc_check.so", "LD_LIBRARY_PATH")
    has("broken installation", broken, "network", "problem", "libosc_ofi.so")

# Jobs.
node = job("one node", "-n", "4", *INFO)
check("one node: nodes", [n["ranks"] for n in node["nodes"]] == [[0, 1, 2, 3]] and node["ways"] == [], str(node))
has("one node", node, "shared_memory", "ok", "ranks 0-3 share memory")
cores = os.sched_getaffinity(0)
check("one node: shared cores", any(f["check"] == "shared_cores" for f in all_of(node)) == (len(cores) < 4), str(node["job"]))
two = job("two nodes", "-genv", "OSC_DEBUG", "fake_nodes=2", "-n", "4", *INFO)
check("two nodes: nodes", [n["ranks"] for n in two["nodes"]] == [[0, 1], [2, 3]], str(two["nodes"]))
check("two nodes: ways", [(w["from"], w["to"], w["arrives"]) for w in two["ways"]] == [(0, 2, True)], str(two["ways"]))
check("two nodes: latency", all(w["put_flush_ns"] > 100 for w in two["ways"]), str(two["ways"]))
apart = job("no network, other settings", "-genv", "OSC_DEBUG", "fake_nodes=2", "-genv", "OSC_OFI_PROVIDER", "nonsense",
            "-n", "1", *INFO, ":", "-n", "1", "-env", "OSC_DEBUG", "fake_nodes=2,spin=3", options.without, "process_vm", *INFO)
has("no network", apart, "windows", "problem", "the host MPI serves", "OSC_DISABLE")
has("other settings", apart, "settings", "problem", "OSC_DEBUG=fake_nodes=2,spin=3", "rank", "-genv")
if run([options.without, "memfd", "true"]).returncode == 0:
    has("one rank's process_vm", apart, "process_vm_ranks", "problem", "rank 0 of", "MPI_Win_allocate")
# Another library's launcher: each process is alone, and one reports.
alone = {"PMIX_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
if "launcher not compatible" in run(INFO, **alone).stderr:
    print("launcher: not run, because MPI_Init of this MPI library refuses such a launcher itself (MPICH 5)")
else:
    has("launcher", local("launcher", **alone), "launcher", "problem", "2 processes", "srun --mpi")
    second = run(INFO, **{**alone, "PMIX_RANK": "1"})
    check("launcher: the second is silent", second.returncode == 0 and second.stdout == "", second.stdout + second.stderr)
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
