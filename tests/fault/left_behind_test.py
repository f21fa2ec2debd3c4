#!/usr/bin/env python3
"""left_behind.py finds each thing that a job can leave, and nothing of another program."""

import ctypes
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import uuid

import left_behind

NAME = f"libosc-test-{uuid.uuid4().hex}"
BIND = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + sys.argv[1]); print(flush=True); time.sleep(60)"
OPEN = "import sys, time; f = open(sys.argv[1], 'w'); print(flush=True); time.sleep(60)"
SEGMENT = "import ctypes; print(ctypes.CDLL(None).shmget(0, 4096, 0o600))"


class LeftBehind(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.watch = left_behind.Watch(place.name, "mpiexec.openmpi")

    def start(self, script, *arguments, marked=True):
        """A process that has done what the script says, and lives."""
        process = subprocess.Popen([sys.executable, "-c", script, *arguments], text=True, stdout=subprocess.PIPE,
                                   env=self.watch.environment() if marked else None)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        process.stdout.readline()
        return process

    def file(self, path):
        path = pathlib.Path(path)
        path.touch()
        self.addCleanup(path.unlink, missing_ok=True)
        return path

    def left(self):
        return self.watch.left(settles=0)

    def test_nothing(self):
        self.assertEqual(self.left(), ([], []))

    def test_process(self):
        process = self.start("import time; print(flush=True); time.sleep(60)")
        self.assertEqual(len(self.left()[0]), 1)
        self.assertIn(f"process {process.pid} ", self.left()[0][0])

    def test_process_that_is_about_to_end(self):
        self.start("import time; print(flush=True); time.sleep(0.2)")
        self.assertEqual(self.watch.left(), ([], []))

    def test_abstract_socket(self):
        self.start(BIND, "any")
        self.assertIn("socket @any", self.left()[0])

    def test_another_jobs_socket(self):
        self.start(BIND, NAME, marked=False)
        self.assertEqual(self.left(), ([], []))

    def test_a_socket_that_another_job_closes_meanwhile(self):
        other = socket.socket(socket.AF_UNIX)
        other.bind("\0" + NAME)
        links = left_behind._links

        def closing(process):
            other.close()
            return links(process)

        with unittest.mock.patch.object(left_behind, "_links", closing):
            self.assertEqual(self.left(), ([], []))

    def test_temporary_file(self):
        path = self.file(pathlib.Path(self.watch.environment()["TMPDIR"], "anything"))
        self.assertEqual(self.left(), ([f"file {path}"], []))

    def test_named_memory(self):
        path = self.file(f"/dev/shm/{NAME}")
        self.assertEqual(self.left(), ([f"file {path}"], []))

    def test_another_jobs_named_memory(self):
        self.addCleanup(pathlib.Path(f"/dev/shm/{NAME}").unlink)
        self.start(OPEN, f"/dev/shm/{NAME}", marked=False)
        self.assertEqual(self.left(), ([], []))

    def test_the_hosts_segment_goes(self):
        path = self.file(f"/dev/shm/vader_segment.{NAME}")
        self.assertEqual(self.left(), ([], [str(path)]))
        self.assertFalse(path.exists())

    def test_segment(self):
        number = subprocess.run([sys.executable, "-c", SEGMENT], text=True, stdout=subprocess.PIPE, check=True).stdout.strip()
        self.addCleanup(ctypes.CDLL(None).shmctl, int(number), 0, None)
        self.assertEqual(self.left(), ([f"segment {number}"], []))

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_mount(self):
        folder = self.watch.environment()["TMPDIR"]
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        self.assertEqual(self.left(), ([f"mount {folder}"], []))


if __name__ == "__main__":
    unittest.main()
