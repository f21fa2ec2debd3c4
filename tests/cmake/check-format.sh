# check-format.sh CLANG_FORMAT: every tracked C and C++ file must be as .clang-format lays it out. Run in the top folder.
set -eu
clang_format=$1
git ls-files '*.c' '*.h' '*.cpp' '*.hpp' | xargs "$clang_format" --dry-run -Werror
