"""libosc by Spack: `spack repo add docs/packaging/spack`, then `spack dev-build --source-path . libosc@0.1.0` in the source tree."""
from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:  # Spack before 1.0 has it in spack.package
    pass


class Libosc(CMakePackage):
    """Faster one-sided communication for existing MPI programs, preloaded or linked, over MPICH and libraries of its ABI."""

    homepage = "https://localhost"  # not published
    license("BSD-3-Clause")
    version("0.1.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("libfabric")
    depends_on("mpi")
    requires("^[virtuals=mpi] mpich@4:", "^[virtuals=mpi] intel-oneapi-mpi", policy="one_of")

    def cmake_args(self):
        return [
            self.define("OSC_MPICC", self.spec["mpi"].mpicc),
            self.define("OSC_OPENMPI_MPICC", ""),  # not the system's
            self.define("OSC_BUILD_TESTS", False),
            self.define("OSC_BUILD_BENCHMARKS", False),
            self.define("OSC_UNITY", True),
        ]
