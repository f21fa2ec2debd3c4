"""Trees that layers.py must find fault with, one arrow each, and one that it must not."""
import pathlib
import subprocess
import sys
import tempfile

CASES = [
    ({"core/a.cpp": '#include "reach/b.h"\n'}, 0),
    ({"core/strategies/a.cpp": '#include "core/b.h"\n'}, 0),
    ({"core/a.cpp": '#include "api/entries.def"\n'}, 0),
    ({"reach/a.cpp": '#include "core/b.h"\n'}, 1),
    ({"shm/a.h": '#include "local/b.h"\n'}, 1),
    ({"progress/a.cpp": "#include <mpi.h>\n"}, 1),
    ({"core/a.cpp": '#include "host/b.h"\n'}, 1),
    ({"net/a.cpp": '#include "host/b.h"\n'}, 1),
    ({"tools/a.cpp": '#include "window/b.h"\n'}, 1),
    ({"tools/a.cpp": '#include "tools/b.h"\n#include "fabric/c.h"\n'}, 0),
    ({"tools/a.cpp": "#include <mpi.h>\n"}, 1),
    ({"tools/check_host.cpp": "#include <mpi.h>\n"}, 0),
    ({"window/a.cpp": '#include "tools/b.h"\n'}, 1),
    ({"net/a.cpp": '#include "fake_fabric/fabric.h"\n'}, 1),
    ({"newroom/a.cpp": ""}, 1),
    ({"abi/a.h": '#include <mpi.h>\n#include "abi/mpich/b.h"\n#include "op/c.h"\n'}, 0),
    ({"abi/mpich/a.cpp": '#include "host/b.h"\n'}, 1),
    ({"abi/mpich/a.cpp": "const int kHandle = 0x4c000000; MPIX_Grequest_start(); MPIR_CVAR_X;\n"}, 0),
    ({"abi/abi.h": "const int kHandle = 0x4c000000;\n"}, 1),
    ({"window/a.cpp": "const unsigned kHandle = 0x8c000003u;\n"}, 1),
    ({"window/a.cpp": "const unsigned kOther = 0x80000007 + 0x3fffffff + 0x4c000;  // window 0xa0000000\n"}, 0),
    ({"host/a.cpp": "real().MPIX_Grequest_start();\n"}, 1),
    ({"host/a.cpp": '#include "abi/abi.h"\nfind("ompi_mpi_comm_world");\n'}, 1),
    ({"host/a.cpp": 'getenv("MPIR_CVAR_NUM_CLIQUES");\n'}, 1),
    ({"api/a.cpp": "int MPII_Win_get_attr();\n"}, 1),
    ({"../tests/a/warnings.py": ""}, 1),
    ({"../tests/a/warned.py": ""}, 0),
]


def main():
    failed = 0
    for files, wanted in CASES:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder) / "src" / name
                path.parent.mkdir(parents=True)
                path.write_text(text, encoding="utf-8")
            run = subprocess.run([sys.executable, sys.argv[1], folder], stdout=subprocess.PIPE, text=True, timeout=20)
            if run.returncode != wanted:
                print(f"{files}: exit {run.returncode}, not {wanted}: {run.stdout}")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
