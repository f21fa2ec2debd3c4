"""Runs one test of ctest as ctest does, with a time limit, and counts its processor time. measure.py and coverage.py use it.

The processor time is that of every process that the test starts. A process whose parent ends first becomes a child of the
caller (PR_SET_CHILD_SUBREAPER) and counts too. Missed are processes that another process reaps in a way of its own: daemons
outside the test, and the processes of a virtual machine's guest, which count as the machine's."""
import contextlib
import ctypes
import fcntl
import json
import multiprocessing
import os
import pathlib
import re
import select
import signal
import subprocess
import tempfile
import time
import traceback

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE = 3  # seconds from SIGTERM to SIGKILL


def adopt_orphans():
    """Makes this process the parent of orphans among its descendants, and lets none outlive it when a signal ends it. Once in
    each process that calls run()."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def end(number, _):
        kill_descendants()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def listed(build, selection):
    """The tests that `ctest SELECTION` would run, each with its command and its properties by name."""
    command = ["ctest", "--test-dir", str(build), "--show-only=json-v1", *selection]
    tests = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["tests"]
    for test in tests:
        test["properties"] = {p["name"]: p["value"] for p in test.get("properties", [])}
    return {test["name"]: test for test in tests if "command" in test}


def descendants():
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry))
    found, ahead = [], [os.getpid()]
    while ahead:
        more = children.get(ahead.pop(), [])
        found += more
        ahead += more
    return found


def kill_descendants():
    for pid in descendants():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def reap(patience):
    """Waits for all children, kills those that stay longer than `patience` seconds, and returns their processor time."""
    seconds, end = 0.0, time.monotonic() + patience
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return seconds
        if pid != 0:
            seconds += usage.ru_utime + usage.ru_stime
            continue
        if time.monotonic() > end:
            kill_descendants()
        time.sleep(0.01)


def judge(test, status, output):
    """passed, failed or skipped, by the properties that ctest reads."""
    properties = test["properties"]

    def matches(name):
        patterns = properties.get(name, [])
        return any(re.search(p, output, re.DOTALL) for p in ([patterns] if isinstance(patterns, str) else patterns))

    if status == properties.get("SKIP_RETURN_CODE") or matches("SKIP_REGULAR_EXPRESSION"):
        return "skipped"
    if matches("FAIL_REGULAR_EXPRESSION"):
        return "failed"
    if "PASS_REGULAR_EXPRESSION" in properties:
        return "passed" if matches("PASS_REGULAR_EXPRESSION") else "failed"
    return "passed" if (status == 0) != bool(properties.get("WILL_FAIL")) else "failed"


@contextlib.contextmanager
def resources(test, folder):
    """Holds the test's RESOURCE_LOCKs, and for RUN_SERIAL all of them, against other processes of the same folder."""
    names = test["properties"].get("RESOURCE_LOCK", [])
    names = [names] if isinstance(names, str) else list(names)
    os.makedirs(folder, exist_ok=True)
    with contextlib.ExitStack() as stack:
        alone = stack.enter_context(open(os.path.join(folder, "serial"), "w", encoding="utf-8"))
        fcntl.flock(alone, fcntl.LOCK_EX if test["properties"].get("RUN_SERIAL") else fcntl.LOCK_SH)
        for name in sorted(names):
            fcntl.flock(stack.enter_context(open(os.path.join(folder, "lock-" + name), "w", encoding="utf-8")), fcntl.LOCK_EX)
        yield


def run(test, settings, limit, folder, replaced=None):
    """Runs the test with the settings in its environment: its verdict (also "hang"), wall and cpu in seconds, and the end of
    its output. `replaced`: (from, to) in the words of its command."""
    properties = test["properties"]
    environment = dict(os.environ)
    wanted = properties.get("ENVIRONMENT", [])
    for word in [wanted] if isinstance(wanted, str) else wanted:
        name, _, value = word.partition("=")
        environment[name] = value
    environment.update(settings)
    command = [word.replace(*replaced) if replaced else word for word in test["command"]]
    with resources(test, folder), tempfile.TemporaryFile() as output:
        begin = time.monotonic()
        # The child's end is this function's to wait for, which needs its usage: Popen never waits.
        process = subprocess.Popen(command, cwd=properties.get("WORKING_DIRECTORY"), env=environment, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        ends = os.pidfd_open(process.pid)
        poll = select.poll()
        poll.register(ends, select.POLLIN)
        in_time = bool(poll.poll(limit * 1000))
        if not in_time:
            os.killpg(process.pid, signal.SIGTERM)
            if not poll.poll(GRACE * 1000):
                kill_descendants()
        os.close(ends)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime + reap(1.0 if in_time else 0.0)
        output.seek(0)
        text = output.read().decode(errors="replace")
    verdict = judge(test, process.returncode, text) if in_time else "hang"
    return {"verdict": verdict, "wall": round(wall, 3), "cpu": round(cpu, 3), "output": text[-600:]}


def cost(run):
    """What a run costs, in seconds of a processor: a test that only waits still takes a place beside others."""
    return run["cpu"] + run["wall"] / 4


def begin_worker(parent, begin, arguments):
    adopt_orphans()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    begin(*arguments)


@contextlib.contextmanager
def workers(jobs, begin, *arguments):
    """A pool of processes for run(), each after begin(*arguments). It ends when the last task is done. Pool.terminate(), which
    can wait for ever for a lock that a worker dies with, is never called: see stop()."""
    adopt_orphans()
    pool = multiprocessing.Pool(jobs, begin_worker, (os.getpid(), begin, arguments))
    try:
        yield pool
    except BaseException:
        traceback.print_exc()
        stop("")
    pool.close()
    pool.join()


def stop(why):
    """Ends this process, its workers and their tests at once."""
    print(why, flush=True)
    kill_descendants()
    os._exit(1)


def save(path, value):
    """Writes JSON in one step, so that a reader finds the old or the new text."""
    fresh = pathlib.Path(str(path) + ".new")
    fresh.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    fresh.replace(path)
