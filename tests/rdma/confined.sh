# sh confined.sh KILOBYTES COMMAND...: runs a command whose processes may lock so much memory; root's privilege to exceed
# the limit goes.
set -eu
limit=$1
shift
ulimit -l "$limit"
exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock "$@"
