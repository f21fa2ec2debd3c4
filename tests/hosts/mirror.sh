#!/bin/sh
# Prints the URI of the archive that this machine's own release comes from, as apt knows it: what debootstrap takes.
set -eu
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(SITE)' |
    awk -v release="$codename" '$1 == release && $2 == "main" { print $3; exit }'
