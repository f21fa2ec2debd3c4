"""Looks for dynamic initialisers: initialisers.py READELF LIBRARY...
A program may call MPI in a constructor of another library, which the loader calls before it initialises the objects of
libosc. So libosc has none that code initialises when the library is loaded. The compiler gathers such code in functions of
the names below; functions with a priority, which libosc's own constructors have, have other names."""
import os
import re
import subprocess
import sys

# One source file's, and those that link-time optimisation has joined; 65535 stands for no priority.
DYNAMIC = re.compile(r"\S*(?:_GLOBAL__sub_I_(?!0)|_GLOBAL__I_65535|_sub_I_65535|__static_initialization)\S*")


def main():
    readelf, *libraries = sys.argv[1:]
    wrong = 0
    for library in libraries:
        symbols = subprocess.run([readelf, "--symbols", "--wide", library], stdout=subprocess.PIPE, check=True, text=True)
        if "'.symtab'" not in symbols.stdout:
            sys.exit(f"{library} has no symbols")
        found = sorted(set(DYNAMIC.findall(symbols.stdout)))
        if found:
            wrong += 1
            print(f"{os.path.basename(library)} initialises objects when it is loaded: {', '.join(found)}")
    sys.exit(1 if wrong else 0)


main()
