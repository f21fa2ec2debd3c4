# sh ratios.sh PROGRAMS LIBRARY: times of the device in this boot by perftest, beside libosc's between two processes:
# ib_write_lat and ib_read_lat beside a put and a get with its flush, ib_send_lat beside an accumulate, which ofi_rxm sends
# as a message. perftest gives half of a round for writes and messages, so a confirmed operation takes about two of these.
# PROGRAMS is the folder of osc_put_latency and its sisters. Times in us: the median of perftest, and of libosc's batches.
# An emulator has long outliers, so a row is the least of two starts in turns.
set -u
programs=$1
library=$2

# perftest TOOL BYTES
perftest() {
    "$1" -d rxe0 -R -F -s "$2" -n 500 >/dev/null 2>&1 &
    server=$!
    sleep 2
    "$1" -d rxe0 -R -F -s "$2" -n 500 10.9.0.1 2>/dev/null | awk -v bytes="$2" '$1 == bytes && NF >= 6 { print $5 }'
    wait "$server"
}

# libosc PROGRAM BYTES
libosc() {
    mpiexec.mpich -n 2 -genv LD_PRELOAD "$library" -genv OSC_DEBUG fake_nodes=2 "$programs/$1" -m "$2:$2" -i 450 -x 50 |
        awk -v bytes="$2" '$1 == bytes { print $2 }'
}

least() {
    grep -x '[0-9.]*' | sort -n | head -n 1  # perftest prints inf now and then
}

status=0
echo "operation bytes libosc perftest ratio"
for row in put:write get:read acc:send; do
    ours=${row%:*} theirs=${row#*:}
    for bytes in 8 512 4096 65536; do
        : >/tmp/ours
        : >/tmp/theirs
        for _ in 1 2; do
            perftest "ib_${theirs}_lat" "$bytes" >>/tmp/theirs
            libosc "osc_${ours}_latency" "$bytes" >>/tmp/ours
        done
        echo "$ours $bytes $(least </tmp/ours) $(least </tmp/theirs)" |
            awk 'NF != 4 { exit 1 } { printf "%s %s %.1f %.1f %.2f\n", $1, $2, $3, $4, $3 / $4 }' || {
            echo "$ours of $bytes bytes: no time"
            status=1
        }
    done
done
exit "$status"
