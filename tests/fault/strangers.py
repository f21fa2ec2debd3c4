#!/usr/bin/env python3
"""What strangers find of a job of strangers.cpp: docs/SECURITY.md's claims, by what the kernel shows.

  strangers.py PART [--mpiexec M] [--env K=V]... -- PROGRAM
  strangers.py look PHASE FOLDER PROCESS:ADDRESS...     a child of rank 0: writes what it sees to FOLDER/PHASE.json

Parts: ports (where processes listen, and when), node (another user of the node, root needed), secrets (where random numbers of libosc
turn up), keys (whether windows' registrations end with them; tests/support/fake_libfabric has few), files (what OSC_STATS and OSC_TRACE write), setuid (a set-uid program, root needed). Exit status 77: not possible here.
"""
import argparse
import array
import ctypes
import glob
import json
import os
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile

NOBODY, ANOTHER = 65534, 65533
MARK = 0x0a5c0a5c5ec2e75  # of strangers.cpp
MISTAKE = "access out of range"


class Skipped(Exception):
    pass


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def links(process):
    """The open descriptors of a process, with what they are."""
    found = {}
    for number in os.listdir(f"/proc/{process}/fd"):
        try:
            found[int(number)] = os.readlink(f"/proc/{process}/fd/{number}")
        except OSError:
            pass
    return found


def ports(process):
    """The addresses at which the process listens."""
    own = {link[8:-1] for link in links(process).values() if link.startswith("socket:[")}
    found = []
    for table in ("tcp", "tcp6"):
        for line in read(f"/proc/{process}/net/{table}").decode().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in own:
                address, port = words[1].split(":")
                text = socket.inet_ntoa(struct.pack("=I", int(address, 16))) if table == "tcp" else "[" + address + "]"
                found.append(f"{text}:{int(port, 16)}")
    return sorted(found)


def area(process, address):
    """(permissions, path) of the memory at an address."""
    for line in read(f"/proc/{process}/maps").decode().splitlines():
        words = line.split(maxsplit=5)
        first, end = (int(word, 16) for word in words[0].split("-"))
        if first <= address < end:
            return words[1], words[5] if len(words) > 5 else ""
    return "", ""


def peek(process, address):
    """The word there, by process_vm_readv; None if the kernel forbids that."""
    word = ctypes.c_uint64(0)
    piece = (ctypes.c_uint64 * 2)
    here, there = piece(ctypes.addressof(word), 8), piece(address, 8)
    got = ctypes.CDLL(None, use_errno=True).process_vm_readv(process, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return word.value if got == 8 else None


def opens(path, flags=os.O_RDONLY):
    try:
        os.close(os.open(path, flags))
        return True
    except OSError:
        return False


def answers(name):
    """Whether what listens at the abstract name answers a stranger's token."""
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        with socket.socket(socket.AF_UNIX, kind) as asking:
            asking.settimeout(0.5)
            try:
                asking.connect("\0" + name)
                asking.send(struct.pack("=Q", 1))
                if asking.recvmsg(64, socket.CMSG_SPACE(array.array("i", [0]).itemsize))[0]:
                    return True
            except OSError:
                pass
    return False


def reached(processes):
    """What this process reaches of the job."""
    found = []
    for process, address in processes:
        if peek(process, address) is not None:
            found.append(f"process_vm_readv of {process}")
        found += [f"/proc/{process}/{name}" for name in ("mem", "environ", "maps") if opens(f"/proc/{process}/{name}")]
    return found


def of_another_user(look):
    """The result of a function, in a child of another user."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(sink, json.dumps(look()).encode())
        finally:
            os._exit(0)
    os.close(sink)
    with os.fdopen(source) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def look(phase, folder, processes):
    processes = [(int(one), int(address)) for one, address in (pair.split(":") for pair in processes)]
    seen = {"ports": {one: ports(one) for one, _ in processes}, "names": read("/proc/net/unix").decode(errors="replace"),
            "inherited": {number: link for number, link in links(os.getpid()).items() if number > 2},
            "areas": [area(*one) for one in processes if one[1]], "environment": {}}
    for one, _ in processes + [(os.getpid(), 0)]:
        seen["environment"][one] = (read(f"/proc/{one}/environ") + read(f"/proc/{one}/cmdline")).decode(errors="replace")
    for path in glob.glob(os.path.join(folder, "trace.json.rank-*")):
        shutil.copy(path, os.path.join(folder, phase + os.path.basename(path)[len("trace.json"):]))
    if phase == "windows" and os.geteuid() == 0:
        names = re.findall(r"@(\S*osc\S*)", seen["names"])
        memory = [f"/proc/{one}/fd/{number}" for one, _ in processes for number, link in links(one).items() if link.startswith("/memfd:osc")]
        shared = {line.split(maxsplit=5)[5] for one, _ in processes for line in read(f"/proc/{one}/maps").decode().splitlines()
                  if line.split()[1].startswith("rw-s") and line.split(maxsplit=5)[-1].startswith("/")}
        seen["root"] = reached(processes) + [path for path in memory if opens(path)]
        seen["marks"] = [peek(*one) == MARK for one in processes]
        seen["stranger"] = of_another_user(lambda: reached(processes) + [path for path in memory if opens(path)]
                                           + [path for path in shared if opens(path, os.O_RDWR)] + [name for name in names if answers(name)])
    with open(os.path.join(folder, phase + ".json"), "w", encoding="utf-8") as file:
        json.dump(seen, file)
    return 0


def run(options, folder, settings):
    """The output of a job, and what its phases show."""
    command = ["timeout", "-k", "5", "60", options.mpiexec, "-n", "2"]
    for setting in options.env + ["OSC_DEBUG=fake_nodes=2", "OSC_FALLBACK=error"] + settings:
        command += ["-genv", *setting.split("=", 1)]
    done = subprocess.run(command + [options.program, folder, sys.executable, os.path.abspath(__file__), "look"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    print(done.stdout)
    if done.returncode != 0:
        raise AssertionError(f"the job ended with {done.returncode}")
    phases = {}
    for phase in ("local", "windows", "freed", "ended"):
        with open(os.path.join(folder, phase + ".json"), encoding="utf-8") as file:
            phases[phase] = json.load(file)
    return done.stdout, phases


def interface():
    """(name, IPv4 address) of an interface that is not loopback; None without one."""
    listed = json.loads(subprocess.run(["ip", "-j", "-4", "address", "show", "up"], check=True, capture_output=True, text=True).stdout)
    found = [(one["ifname"], one["addr_info"][0]["local"]) for one in listed if one["ifname"] != "lo" and one["addr_info"]]
    return found[0] if found else None


def check_ports(options, folder):
    worlds = [([], "127.0.0.1")]
    other = interface()
    if other:
        worlds.append(([f"OSC_OFI_IFACE={other[0]}"], other[1]))
    wrong = []
    for provider in ("tcp", "net"):
        for settings, address in worlds:
            _, phases = run(options, folder, settings + [f"OSC_OFI_PROVIDER={provider}"])
            for process, before in phases["local"]["ports"].items():
                opened = [sorted(set(phases[phase]["ports"].get(process, [])) - set(before)) for phase in ("windows", "freed")]
                print(provider, settings, process, "listens at", before, "and then at", opened)
                if len(opened[0]) != 2 or any(not port.startswith(address + ":") for port in opened[0]):
                    wrong.append(f"{provider}: not two ports at {address}: {opened[0]}")
                if opened[1] != opened[0]:
                    wrong.append(f"{provider}: other ports when the windows are gone: {opened[1]}")
    return wrong


def check_node(options, folder):
    if os.geteuid() != 0:
        raise Skipped("another user's process needs root")
    _, phases = run(options, folder, [])
    seen = phases["windows"]
    wrong = [] if all(seen["marks"]) and any("memfd" in path for _, path in seen["areas"]) else ["root finds no window: this shows nothing"]
    if not [path for path in seen["root"] if "/fd/" in path]:
        wrong.append("root opens no memory of a window: this shows nothing")
    wrong += [f"another user reaches {what}" for what in seen["stranger"]]
    wrong += [f"a window lies in {path}" for phase in phases.values() for _, path in phase["areas"] if path != "/memfd:osc (deleted)"]
    wrong += [f"a child has the descriptor of {what}" for phase in phases.values() for what in phase["inherited"].values() if "osc" in what]
    return wrong


def check_secrets(options, folder):
    stats, trace = os.path.join(folder, "stats.json"), os.path.join(folder, "trace.json")
    output, phases = run(options, folder, ["OSC_VERBOSE=all", f"OSC_STATS={stats}", f"OSC_TRACE={trace}"])
    places = {"the output": output.encode(), "OSC_STATS' file": read(stats), "OSC_TRACE's file": read(trace)}
    for phase, seen in phases.items():
        places[f"abstract names ({phase})"] = seen["names"].encode()
        places[f"environments and command lines ({phase})"] = json.dumps(seen["environment"]).encode()
    raw = glob.glob(os.path.join(folder, "windows.rank-*"))
    places.update((f"OSC_TRACE's file of a process ({os.path.basename(path)})", read(path)) for path in raw)
    drawn = [int(line, 16) for path in glob.glob(os.path.join(folder, "drawn.*")) for line in read(path).split()]
    wrong = [f"nothing in {place}: this shows nothing" for place, text in places.items() if not text]
    if len(raw) != 2 or len(drawn) < 2 * 3:  # the arena's token, the key of a window, and of rank 0 the job's secret
        wrong.append(f"{len(raw)} files of processes, {len(drawn)} random numbers from the kernel: too few")
    # Random, and public: the number of a recording.
    public = {struct.unpack_from("=Q", read(path), 32)[0] for path in raw}
    for number in set(drawn) - public:
        needles = [b"%x" % number, b"%d" % number, b"%d" % (number - (number >> 63 << 64)), struct.pack("=Q", number)]
        wrong += [f"a random number is in {place}" for place, text in places.items() if any(needle in text.lower() for needle in needles)]
    print(f"{len(drawn)} random numbers, looked for in {sum(map(len, places.values()))} bytes of {len(places)} places")
    return wrong


def check_keys(options, folder):
    stats = os.path.join(folder, "stats.json")
    run(options, folder, [f"OSC_STATS={stats}", "FAKE_FI_REGISTRATIONS=8", "OSC_OFI_PROVIDER=tcp"])
    with open(stats, encoding="utf-8") as file:
        paths = [list(window["paths"]) for window in json.load(file)["windows"] if window["processes"] == 2]
    return [] if paths == [["direct"]] * 22 else [f"a freed window keeps its registration: others' gets go by {paths}"]


def check_files(options, folder):
    stats, trace = os.path.join(folder, "stats.json"), os.path.join(folder, "trace.json")
    settings = [f"OSC_STATS={stats}", f"OSC_TRACE={trace}"]
    victim = os.path.join(folder, "victim")
    wrong = []
    os.umask(0o077)
    run(options, folder, settings)
    for path in [stats, trace] + glob.glob(os.path.join(folder, "windows.rank-*")):
        if stat.S_IMODE(os.stat(path).st_mode) != 0o600:
            wrong.append(f"{path} has the mode {stat.S_IMODE(os.stat(path).st_mode):o} under the umask 077")
    # A process's file is new, whatever its name led to; the job's file goes through a link of the user's own.
    for owner in [os.geteuid()] + ([ANOTHER] if os.geteuid() == 0 else []):
        for path in (stats, trace, trace + ".rank-0"):
            for old in (stats, trace, trace + ".rank-0"):
                if os.path.lexists(old):
                    os.unlink(old)
            with open(victim, "w", encoding="utf-8") as file:
                file.write("kept")
            os.symlink(victim, path)
            os.lchown(path, owner, -1)
            run(options, folder, settings)
            follows = owner == os.geteuid() and not path.endswith("rank-0")
            if (read(victim) != b"kept") != follows:
                wrong.append(f"{path}, a link of user {owner}, is {'not ' if follows else ''}followed")
    return wrong


def check_setuid(options, folder):
    if os.geteuid() != 0:
        raise Skipped("a set-uid program of another user needs root")
    program = os.path.join(folder, "program")
    shutil.copy(options.program, program)
    tool = os.path.join(folder, "addr2line")
    with open(tool, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho ran >>{folder}/ran\n")
    os.chmod(tool, 0o755)
    os.chmod(folder, 0o777)
    library = [setting.split("=", 1)[1].split(":")[0] for setting in options.env if setting.startswith("LD_PRELOAD=")][0]
    if not of_another_user(lambda: os.access(program, os.R_OK) and os.access(library, os.R_OK)):
        raise Skipped(f"another user cannot read {library}")
    wrong = []
    for secure in (False, True):
        os.chown(program, ANOTHER, NOBODY)
        os.chmod(program, 0o4755 if secure else 0o755)
        environment = {"PATH": folder + ":" + os.environ["PATH"], "OSC_STATS": f"{folder}/stats.{secure}", "HOME": folder,
                       "OSC_TRACE": f"{folder}/trace.{secure}", "OSC_CHECK": "1", "OSC_DEBUG": "sleep_ms=3"}
        done = subprocess.run(["timeout", "-k", "5", "60", program], user=NOBODY, group=NOBODY, extra_groups=[], cwd=folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        print(done.stdout)
        if secure and "AT_SECURE=0" in done.stdout:
            raise Skipped("the system runs no set-uid program here (nosuid?)")
        if done.returncode != 0 or f"AT_SECURE={int(secure)}" not in done.stdout:
            raise AssertionError(f"the program ended with {done.returncode}")
        did = {"a file of statistics": os.path.exists(environment["OSC_STATS"]), "a file of a timeline": os.path.exists(environment["OSC_TRACE"]),
               "a report of the checker": MISTAKE in done.stdout, "a program of the caller's PATH": os.path.exists(f"{folder}/ran")}
        wrong += [f"{'set-uid' if secure else 'plain'}: {'' if there else 'no '}{what}" for what, there in did.items() if there == secure]
        if secure and "OSC_STATS is ignored" not in done.stdout:
            wrong.append("no line says that the options are ignored")
        if not secure:
            os.unlink(f"{folder}/ran")
    return wrong


def main():
    if sys.argv[1] == "look":
        return look(sys.argv[2], sys.argv[3], sys.argv[4:])
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["ports", "node", "secrets", "keys", "files", "setuid"])
    parser.add_argument("--mpiexec", default="mpiexec.mpich")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("program")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="osc-strangers-") as folder:
        try:
            wrong = globals()["check_" + options.part](options, folder)
        except Skipped as why:
            print(f"SKIPPED: {why}")
            return 77
    print("\n".join("FAILED: " + line for line in wrong) or "what strangers see is as docs/SECURITY.md says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
