#!/usr/bin/env bash
# Usage: tools/slurm.sh
# Runs the array job of docs/sweeps.md on a SLURM of its own: one node, with a controller, a daemon
# and an authority that this script starts and ends. A task is requeued in the middle. The joined
# results must be those of one machine. As root; says NOT RUN where SLURM is not installed.
set -euo pipefail
. "$(dirname "$0")/ran.sh"
PATH="$PATH:/usr/sbin"

for tool in slurmctld slurmd sbatch munged; do
    command -v "$tool" >/dev/null || not_run "slurm" "$tool is not installed (Debian: slurm-wlm, munge)"
done
[ "$(id -u)" = 0 ] || not_run "slurm" "its daemons start jobs as other users, so it needs root"

folder="$(mktemp -d)"
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$folder"
}
trap finish EXIT
bellwire="$(realpath "$(built bellwire-cli bellwire)")"
chmod 755 "$folder"
mkdir "$folder"/{munge,state,spool,work}
dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
chmod 400 "$folder/munge/key"
# An authority of its own, as root, beside one that the host may have.
munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" >"$folder/munge/out" 2>&1 &
pids+=($!)

host="$(hostname -s)"
cat >"$folder/slurm.conf" <<CONF
ClusterName=bellwire
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MailProg=/bin/true
JobRequeue=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
export SLURM_CONF="$folder/slurm.conf"
slurmctld -D -c >"$folder/slurmctld.out" 2>&1 &
pids+=($!)
slurmd -D -c >"$folder/slurmd.out" 2>&1 &
pids+=($!)

# soon WHAT COMMAND...: the command succeeds within a minute or two.
soon() {
    local what="$1"
    shift
    for _ in $(seq 600); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.2
    done
    printf 'error: slurm: %s\n' "$what" >&2
    tail -n 20 "$folder"/*.log "$folder"/*.out >&2
    return 1
}
idle() { sinfo -h -o %T | grep -q idle; }
soon "the node does not come up" idle

cd "$folder/work"
cat >sweep.toml <<'TOML'
model = "hpcl"
load = "round-trip"
[set]
"load.rounds" = 2000
[grid]
"load.bytes" = { from = "64 B", to = "1000 B", steps = 18 }
"load.over" = ["hpcl", "tcp"]
TOML
cat >job.sh <<JOB
#!/bin/bash
#SBATCH --array=0-3
#SBATCH --requeue
first=\$((SLURM_ARRAY_TASK_ID * 10))
"$bellwire" model sweep sweep.toml --points \$first..\$((first + 10))
JOB
job="$(sbatch --parsable job.sh)"
started() { [ -s sweep.0-10.parquet.journal ]; }
soon "the first task does not start" started
scontrol requeue "${job}_0"
# A requeued task waits for two minutes, unless somebody says otherwise once it is in the queue.
parts() {
    scontrol update "JobId=${job}_0" StartTime=now || true
    [ "$(ls sweep.*-*.parquet 2>/dev/null | wc -l)" = 4 ] && [ -z "$(squeue -h -j "$job")" ]
}
soon "the tasks do not end" parts
"$bellwire" model sweep sweep.toml --out joined.parquet --join sweep.*-*.parquet >/dev/null
"$bellwire" model sweep sweep.toml --out alone.parquet >/dev/null
cmp joined.parquet alone.parquet
echo "test result: ok. 1 passed; 0 failed (36 points in 4 tasks of SLURM $(sbatch --version | cut -d' ' -f2), one requeued)"
