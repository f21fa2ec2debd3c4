"""What a job has left behind: processes, files, sockets, memory segments, mounts.

The job gets folders of its own for temporary files, and a mark in its environment. Other programs of the machine come and go
meanwhile: what is not in these folders counts only if it belongs to a process with the mark, or if it has a name of libosc's
and no living process uses it.
"""

import os
import pathlib
import re
import shutil
import time

MARK = "FAULT_JOB"
OURS = re.compile(r"osc", re.IGNORECASE)
# What MPICH and Open MPI leave in /dev/shm where a process is killed, and in the job's own folders.
MPICH = re.compile(r"^(mpich_|ucx_shm)")
OPEN_MPI = re.compile(r"^(vader_segment\.|sm_segment\.|osc_rdma\.|ucx_shm)")
HOSTS_FOLDERS = re.compile(r"^(ompi\.|openmpi-|pmix|prte|hydra|mpich)")
SETTLES = 5  # seconds: a process that has been killed ends in its own time


def _processes():
    return pathlib.Path("/proc").glob("[0-9]*")


def _links(process):
    links = []
    try:
        for link in (process / "fd").iterdir():
            try:
                links.append(os.readlink(link))
            except OSError:
                pass  # closed meanwhile
    except OSError:
        pass  # another's, or gone
    return links


def _is_used(path):
    """Whether a process has the file open or mapped."""
    for process in _processes():
        try:
            if f" {path}\n" in (process / "maps").read_text(errors="replace") or str(path) in _links(process):
                return True
        except OSError:
            pass
    return False


def _files(hosts):
    """With names that the job may have given."""
    return ({path for path in pathlib.Path("/dev/shm").iterdir() if OURS.search(path.name) or hosts.match(path.name)} |
            {path for path in pathlib.Path("/tmp").iterdir() if OURS.search(path.name)})


def _sockets():
    """The names of bound sockets, by inode."""
    lines = [line.split(maxsplit=7) for line in pathlib.Path("/proc/net/unix").read_text(errors="replace").splitlines()[1:]]
    return {words[6]: words[7] for words in lines if len(words) == 8}


def _segments():
    """System V's that no process has attached, as (number, creator)."""
    try:
        lines = pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    except OSError:
        return set()
    return {(words[1], words[4]) for words in map(str.split, lines) if words[6] == "0"}


def _mounts():
    return {line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()}


class Watch:
    """Of one job of a launcher, whose folders it makes in `place`."""

    def __init__(self, place, mpiexec):
        self._place = place
        self._hosts = OPEN_MPI if "openmpi" in mpiexec else MPICH
        self._mark = f"{MARK}={place}".encode()
        self._folders = [pathlib.Path(place, name) for name in ("tmp", "run")]
        for folder in self._folders:
            folder.mkdir(mode=0o700)
        self._files, self._sockets, self._segments = _files(self._hosts), _sockets(), _segments()

    def environment(self):
        return {**os.environ, MARK: self._place, "TMPDIR": str(self._folders[0]), "XDG_RUNTIME_DIR": str(self._folders[1])}

    def _running(self):
        """The processes with the mark, wherever they were started and whatever namespaces they are in."""
        found = []
        for process in _processes():
            try:
                if self._mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process, f"process {process.name} {(process / 'comm').read_text().strip()}"))
            except OSError:
                pass
        return found

    def _new_files(self):
        """(libosc's, the host's)"""
        # Another job may unlink its file while the processes are looked through.
        ours = [path for path in _files(self._hosts) - self._files if not _is_used(path) and path.exists()]
        hosts = [path for path in ours if self._hosts.match(path.name)]
        inside = [path for folder in self._folders for path in folder.iterdir()]
        hosts += [path for path in inside if HOSTS_FOLDERS.match(path.name)]
        return [path for path in ours + inside if path not in hosts], hosts

    def _new_sockets(self, running):
        new = {inode: name for inode, name in _sockets().items() if inode not in self._sockets}
        owned = {link for process, _ in running for link in _links(process)}
        known = {link for process in _processes() for link in _links(process)} if new else set()
        # Another job may close its socket while the processes are looked through.
        still = _sockets() if new else {}
        return [f"socket {name}" for inode, name in new.items() if inode in still and
                (f"socket:[{inode}]" in owned or (OURS.search(name) and f"socket:[{inode}]" not in known))]

    def _left(self):
        running = self._running()
        left = [text for _, text in running] + self._new_sockets(running)
        left += [f"segment {number}" for number, creator in _segments() - self._segments
                 if not pathlib.Path("/proc", creator).exists()]
        left += [f"mount {path}" for path in _mounts() if path.startswith(self._place)]
        ours, hosts = self._new_files()
        left += [f"file {path}" for path in ours]
        return sorted(left), hosts

    def left(self, settles=SETTLES):
        """What the job has left, and what its host MPI has, which is removed."""
        end = time.monotonic() + settles
        left, of_host = self._left()
        while left and time.monotonic() < end:
            time.sleep(0.02)
            left, of_host = self._left()
        for path in of_host:
            if _is_used(path):  # by now, by another program's processes
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return left, sorted(str(path) for path in of_host)
