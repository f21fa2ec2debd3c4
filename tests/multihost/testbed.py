"""Runs commands on the hosts of hosts.sh, never longer than their time, and finds processes that outlive them."""

import os
import pathlib
import signal
import subprocess
import threading
import time
import uuid

HOSTS = pathlib.Path(__file__).with_name("hosts.sh")
SKIPPED = 77
OUT_OF_TIME = 124
MARK = "OSC_TESTBED_MARK"


class Job:
    """One run of hosts.sh."""

    def __init__(self, hosts, command, link="bridge", settings=()):
        self.mark = uuid.uuid4().hex
        self.lines = []
        environment = dict(os.environ, LINK=link, **{MARK: self.mark}, **dict(settings))
        # If this process is killed, so is the job.
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "bash", str(HOSTS), str(hosts), *command], env=environment, text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            print(line, end="", flush=True)
            self.lines.append(line)

    def processes(self):
        """All that were started in it and live."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def wait(self, seconds):
        """The exit status."""
        try:
            status = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.stop(signal.SIGTERM)
            print(f"no end after {seconds} s")
            status = OUT_OF_TIME
        self.reader.join(timeout=5)
        return status

    def stop(self, number):
        """Sends a signal to hosts.sh and waits for its end."""
        for signal_number in (number, signal.SIGKILL):
            self.process.send_signal(signal_number)
            try:
                return self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                pass
        return self.process.wait()

    def left_behind(self):
        """Processes that outlive the job. Nothing else can be left: its namespaces, devices and mounts have no names, so
        they last as long as its processes."""
        end = time.monotonic() + 5
        while left := self.processes():
            if time.monotonic() > end:
                return left
            time.sleep(0.05)
        return []


def run(hosts, command, seconds, **how):
    """Exit status and output; the status is 1 where something is left behind."""
    job = Job(hosts, command, **how)
    status = job.wait(seconds)
    left = job.left_behind()
    if left:
        print(f"FAILED: left behind: processes {left}")
        status = status or 1
    return status, "".join(job.lines)


def mpi_command(ranks, program, settings=(), per_host=None):
    """The command that starts an MPI program inside. The settings, above all LD_PRELOAD, are for the program, not for mpiexec."""
    words = ["-n", str(ranks)]
    if per_host:
        words += ["-ppn", str(per_host)]
    for name, value in settings:
        words += ["-genv", name, value]
    # $MPIRUN is several words.
    return ["sh", "-c", 'exec $MPIRUN "$@"', "sh", *words, *program]
