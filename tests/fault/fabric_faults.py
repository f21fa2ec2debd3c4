#!/usr/bin/env python3
"""Runs fault_fabric_faults with one fault of rank 1's libfabric after the other, and with few descriptors.

  fabric_faults.py --mpiexec M --fake LIBRARY --preload LIBRARIES [--only TEXT] -- PROGRAM

A fault while rank 1 opens its endpoint leaves the windows of both ranks to the host, with the reason in one line, or fails
their creation with OSC_FALLBACK=error. A registration that fails makes messages carry the data. Without descriptors for connections the
host serves. Only with OSC_TEST_FULL all of it runs.
"""
import argparse
import os
import re
import subprocess
import sys

# The steps in which an endpoint opens (tests/support/fake_libfabric/settings.cpp), and a word of the reason.
OPENING = {"getinfo": "Cannot allocate memory", "fabric": "fi_fabric", "domain": "fi_domain", "av": "fi_av_open", "cq": "fi_cq_open",
           "endpoint": "fi_endpoint", "bind": "fi_ep_bind", "enable": "fi_enable", "name": "fi_getname",
           "wait": "nothing to sleep on", "recv": "cannot post a receive"}
LOCAL = {"FAKE_FI_MODES": "local,prov_key,endpoint"}
SHORT = ("endpoint fails", "few queue pairs", "enough queue pairs", "the only provider does not wake", "a provider that does not open", "endpoint fails, no fallback", "later registrations fail", "few registrations", "few descriptors")
SECONDS = 60

parser = argparse.ArgumentParser()
parser.add_argument("--mpiexec", required=True)
parser.add_argument("--fake", required=True)
parser.add_argument("--preload", required=True)
parser.add_argument("--only", default="")
parser.add_argument("program", nargs="+")
options = parser.parse_args()
wrong = []


def run(what, expected, settings, line=None):
    """Rank 1 has the settings. `line`: what stderr says once."""
    if options.only not in what or not (full or what in SHORT):
        return
    settings = {"FAKE_FI_RANK": "1", "OSC_DEBUG": "fake_nodes=2", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1", **settings,
                "LD_PRELOAD": f"{options.preload}:{options.fake}"}
    command = [options.mpiexec]
    for name, value in settings.items():
        command += ["-genv", name, value]
    command += ["-n", "2", *options.program, expected]
    try:
        job = subprocess.run(["timeout", "-k", "5", str(SECONDS), *command], capture_output=True, text=True, timeout=2 * SECONDS)
    except subprocess.TimeoutExpired:
        wrong.append(f"{what}: no end")
        return
    text = job.stdout + job.stderr
    if job.returncode != 0 or "PASSED" not in job.stdout:
        wrong.append(f"{what}: exit {job.returncode}\n{text[-3000:]}")
    elif line is not None and len(re.findall(line, job.stderr)) != 1:
        wrong.append(f"{what}: not once: {line}\n{text[-3000:]}")


full = "OSC_TEST_FULL" in os.environ
for step, word in OPENING.items():
    run(f"{step} fails", "host", {"FAKE_FI_FAIL": step, "OSC_OFI_PROVIDER": "tcp;ofi_rxm"},
        rf"libosc: rank 1: the network cannot be used: .*{word}")
run("endpoint fails, no fallback", "refused", {"FAKE_FI_FAIL": "endpoint", "OSC_FALLBACK": "error"})
run("the receive buffers cannot be registered", "host", {"FAKE_FI_FAIL": "mr", **LOCAL},
    "rank 1: the network cannot be used: .*cannot register memory for messages")
# The native provider over TCP is net, or tcp from libfabric 1.18 on.
for name in ("net", "tcp"):
    run(f"a provider that does not wake ({name})", "served", {"OSC_FALLBACK": "error", "FAKE_FI_DEAF": name})
deaf = {"OSC_FALLBACK": "error", "FAKE_FI_DEAF": "tcp;ofi_rxm", "OSC_OFI_PROVIDER": "tcp;ofi_rxm"}
run("the only provider does not wake", "served", deaf,
    "rank 0: tcp;ofi_rxm: messages do not reach a sleeping process; .* because no other provider can be used")
run("a provider that does not open", "served", {"OSC_FALLBACK": "error", "FAKE_FI_FAIL": "enable", "FAKE_FI_ONCE": "1"},
    "rank 1: not used: (net|tcp): fi_enable")
served = {"OSC_FALLBACK": "error", "OSC_DEBUG": "fake_nodes=2,lock_scheme=two_level"}
# An adapter has a queue pair for each connection: one to the other rank, and two for the endpoint's own probes.
pairs = {"FAKE_FI_VERBS": "1", "OSC_OFI_PROVIDER": "verbs;ofi_rxm"}
reason = r"verbs;ofi_rxm: .* has 2 queue pairs \(max_qp\), and connections to 1 process of other nodes and to itself take 3"
run("few queue pairs", "host", {**pairs, "FAKE_FI_QUEUE_PAIRS": "2"}, "libosc: rank 1: the network cannot be used: " + reason)
run("few queue pairs everywhere", "host", {**pairs, "FAKE_FI_QUEUE_PAIRS": "2", "FAKE_FI_RANK": ""},
    "libosc: rank 0: MPI_Win_allocate: .*because the network cannot be used: " + reason)
run("few queue pairs, no fallback", "refused", {**pairs, "FAKE_FI_QUEUE_PAIRS": "2", "OSC_FALLBACK": "error"})
run("few queue pairs, another provider", "served", {**pairs, "FAKE_FI_QUEUE_PAIRS": "2", "OSC_OFI_PROVIDER": "", "OSC_FALLBACK": "error"},
    "libosc: rank 1: not used: " + reason)
run("enough queue pairs", "served", {**pairs, "FAKE_FI_QUEUE_PAIRS": "3", "OSC_FALLBACK": "error"})
run("no registration", "served", {"FAKE_FI_FAIL": "mr", **served})
# The probes' registrations work, the windows' do not.
run("later registrations fail", "served", {"FAKE_FI_FAIL": "mr", "FAKE_FI_AFTER": "5", **served})
run("few registrations", "served", {"FAKE_FI_REGISTRATIONS": "12", **LOCAL, **served})
run("large memory cannot be registered", "no_memory", {"FAKE_FI_LARGEST": str(3 << 20), **LOCAL, "OSC_FALLBACK": "error",
                                                       "OSC_DEBUG": "fake_nodes=2,net_protocol=direct"})
run("rank 0 cannot be reached", "insert", {"FAKE_FI_FAIL": "insert", "FAKE_FI_AFTER": "1", "OSC_FALLBACK": "error",
                                           "OSC_DEBUG": "fake_nodes=2,peer_timeout=3"})
run("few descriptors", "descriptors", {"OSC_DEBUG": "fake_nodes=2,peer_timeout=10"})
run("few descriptors, net", "descriptors", {"OSC_DEBUG": "fake_nodes=2,peer_timeout=10", "OSC_OFI_PROVIDER": "net"})
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
