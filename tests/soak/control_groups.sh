#!/bin/sh
# The sandbox's tests in a kernel that has control groups of version 2 alone: user-mode Linux (Debian's package
# user-mode-linux) with this machine's files, as root, then as "nobody" in a group that is delegated to it, as systemd
# does with Delegate=yes and DelegateSubgroup=agent. As root: sh tests/soak/control_groups.sh [PYTHON]
set -e
if [ $$ -ne 1 ]; then
  python=$(realpath -s "${1:-.venv/bin/python}")
  log=$(mktemp)
  TMPDIR=/dev/shm "${UML:-linux.uml}" mem=4G root=/dev/root rootfstype=hostfs rootflags=/ rw con=null \
    init="$(realpath "$0")" PYTHON_OF_TESTS="$python" LOG_OF_TESTS="$log" </dev/null >/dev/null 2>&1 || true
  cat "$log"
  exec test "$(grep -c '^[0-9]* passed' "$log")" -eq 2
fi
exec >"$LOG_OF_TESTS" 2>&1
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs run /run
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
mkdir -m 1777 /run/tmp
export TMPDIR=/run/tmp HOME=/run/tmp
cd "$(dirname "$0")/../.."
export PYTHONPATH="$PWD"
tests="$PYTHON_OF_TESTS -m pytest -p no:cacheprovider -q -n 0 --timeout 400 tests/integration/sandbox/test_hunger.py"
$tests --basetemp=/run/tmp/root -k "memory or bomb or many_processes" || true

if [ -e /root/.pyenv ]; then # an interpreter there is shown to everybody
  mount -t tmpfs -o mode=755 mnt /mnt
  mkdir /mnt/pyenv
  mount --bind /root/.pyenv /mnt/pyenv
  mount -t tmpfs -o mode=755 root /root
  mkdir /root/.pyenv
  mount --bind /mnt/pyenv /root/.pyenv
fi
service=/sys/fs/cgroup/service
mkdir -p $service/agent
echo "+memory +pids" >/sys/fs/cgroup/cgroup.subtree_control
chown nobody $service $service/cgroup.procs $service/cgroup.subtree_control
chown -R nobody $service/agent
echo $$ >$service/agent/cgroup.procs
mkdir /run/tmp/nobody
chown nobody /run/tmp/nobody
export HOME=/run/tmp/nobody TMPDIR=/run/tmp/nobody
setpriv --reuid=nobody --regid=nogroup --clear-groups $tests --basetemp=/run/tmp/nobody/py \
  -k "lie_in_memory or memory_of_one or bomb" || true
sync
echo o >/proc/sysrq-trigger
sleep 60
