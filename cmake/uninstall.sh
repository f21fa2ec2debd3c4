#!/bin/sh
# Removes the files that the last installation from a build folder has installed, and the folders of libosc's own (below a folder
# osc) that this leaves empty:
#   sh cmake/uninstall.sh BUILD
set -eu
manifest=${1:?"usage: sh cmake/uninstall.sh BUILD"}/install_manifest.txt
each() {
    while read -r path || [ -n "$path" ]; do
        "$1" "${DESTDIR-}$path"
    done
}
remove() {
    rm -f "$1"
}
empty() {
    folder=$1
    while expr "$folder/" : '.*/osc/' >/dev/null && rmdir "$folder" 2>/dev/null; do
        folder=${folder%/*}
    done
}
each remove <"$manifest"
sed 's|/[^/]*$||' "$manifest" | sort -ru | each empty
