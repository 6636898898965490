# The checks of `cargo xtask systemd`. Runs as the first process of its own pid, mount and cgroup namespaces.
# Arguments: the program, a directory for everything that is written, and the program of the daemon's tests.
set -u
dir=$2
suite=$3
mkdir -p "$dir/bin" "$dir/home" "$dir/work"
cp "$1" "$dir/bin/agentd"
agentd=$dir/bin/agentd

mount -t tmpfs tmpfs /run || exit 1
mkdir -p /run/systemd/system /run/user/0
umount -R /sys/fs/cgroup 2>/dev/null
mount -t cgroup2 none /sys/fs/cgroup || exit 1
# A process outside this pid namespace is shown as 0: the service manager would take it over.
if grep -qx 0 /sys/fs/cgroup/cgroup.procs; then
    echo "the cgroup has processes of others"
    exit 1
fi

export HOME="$dir/home" AGENTD_HOME="$dir/home/state" AGENTD_SANDBOX=full-access
export XDG_RUNTIME_DIR=/run/user/0 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/0/bus
cd "$dir/work" || exit 1

failed=0
ok() { echo "ok      $1"; }
fail() { echo "FAILED  $1"; failed=1; }
# check WHAT COMMAND...: the command succeeds.
check() { what=$1; shift; if "$@"; then ok "$what"; else fail "$what: $*"; fi; }
# await WHAT COMMAND...: the command succeeds within a minute.
await() {
    what=$1; shift
    for _ in $(seq 600); do
        if "$@"; then ok "$what"; return; fi
        sleep 0.1
    done
    fail "$what: $*"
}
manager() {
    rm -rf /run/user/0/* 2>/dev/null
    systemd --user --log-target=console >> "$dir/manager.log" 2>&1 &
    for _ in $(seq 600); do
        systemctl --user show --property=Version > /dev/null 2>&1 && return
        sleep 0.1
    done
    fail "the service manager starts"
}
active() { test "$(systemctl --user is-active "$1")" = "$2"; }
daemon_pid() { systemctl --user show --property=MainPID --value agentd.service; }
other_daemon() { pid=$(daemon_pid); test "$pid" != 0 && test "$pid" != "$1"; }
runtime_pid() { "$agentd" show coder --json | sed -n 's/.*"process":{[^}]*"pid":\([0-9]*\).*/\1/p'; }
has_runtime() { test -n "$(runtime_pid)"; }
same_runtime() { test "$(runtime_pid)" = "$1"; }
other_runtime() { test "$(runtime_pid)" != "$1"; }
alive() { kill -0 "$1" 2>/dev/null; }
gone() { ! test -e "$1"; }
agent_id() { "$agentd" show "$1" --json | sed -n 's/^{"id":"\([0-9a-f-]*\)".*/\1/p'; }
scope_of() { sed -n 's|^0::.*/\(agentd-[0-9a-f-]*\.scope\)/.*|\1|p' "/proc/$1/cgroup"; }
gone_unit() { ! systemctl --user is-active --quiet "$1"; }
property() { systemctl --user show --property="$2" --value "$1"; }
no_scope() { test -z "$(systemctl --user list-units --all --no-legend 'agentd-*.scope')"; }
no_scope_cgroup() { test -z "$(find /sys/fs/cgroup -type d -name 'agentd-*.scope')"; }
no_task_cgroup() { test -z "$(find /sys/fs/cgroup -type d -name 'agentd-task-*')"; }

manager
check "install" "$agentd" daemon install --json
check "the service is active" active agentd.service active
check "the socket is active" active agentd.socket active
check "an agent is created" "$agentd" create coder --provider demo
check "a turn begins" "$agentd" send coder --no-wait 'count to 1200; then run `echo done >> effects`'
await "the agent has a process" has_runtime
runtime=$(runtime_pid)

scope=agentd-$(agent_id coder).scope
check "the agent's process is in its scope" test "$(scope_of "$runtime")" = "$scope"
check "the scope is described by the agent's name" test "$(property "$scope" Description)" = "agentd agent coder"
check "the scope is delegated" test "$(property "$scope" Delegate)" = yes

daemon=$(daemon_pid)
systemctl --user kill --signal=KILL agentd.service
await "a killed unit is replaced" other_daemon "$daemon"
await "the agent's process is adopted after a kill of the unit" same_runtime "$runtime"

daemon=$(daemon_pid)
kill -KILL "$daemon"
await "a killed daemon is replaced" other_daemon "$daemon"
await "the agent's process is adopted after a kill" same_runtime "$runtime"

check "the service is stopped" systemctl --user stop agentd.service
check "the agent's process outlives the service" alive "$runtime"
check "a connection starts the daemon" "$agentd" list
await "the agent's process is adopted after a stop" same_runtime "$runtime"

cp "$agentd" "$dir/bin/new" && mv "$dir/bin/new" "$agentd"
check "the service is upgraded" systemctl --user restart agentd.service
await "the agent's process outlives an upgrade" same_runtime "$runtime"
check "the turn completes" "$agentd" wait coder --timeout 2m
check "its tool ran once" test "$(cat effects)" = done
await "a process of the old build is replaced" other_runtime "$runtime"

check "another turn begins" "$agentd" send coder --no-wait 'count to 100; then run `echo resumed >> effects`'
# A reboot: everything but this script ends at once.
kill -s KILL -- -1
manager
# No client asks for it.
await "a turn continues by itself after a reboot" grep -qx resumed effects

check "the turn after the reboot completes" "$agentd" wait coder --timeout 2m
runtime=$(runtime_pid)
check "its process is in the scope again" test "$(scope_of "$runtime")" = "$scope"

check "another agent is created" "$agentd" create bounded --provider demo
check "it gets limits" "$agentd" set bounded limits.memory_bytes=1000000000 limits.cpu_percent=50
check "it answers" "$agentd" send bounded 'run `true`'
bounded=agentd-$(agent_id bounded).scope
check "its memory limit is a property of its scope" test "$(property "$bounded" MemoryMax)" = 1000000000
check "its CPU limit is a property of its scope" test "$(property "$bounded" CPUQuotaPerSecUSec)" = 500ms
check "it is removed" "$agentd" rm bounded
await "no unit of it is left" gone_unit "$bounded"

check "the daemon stops" "$agentd" daemon stop
await "no scope is left" no_scope
await "no cgroup of a scope is left" no_scope_cgroup
check "its socket stops too" active agentd.socket inactive
check "a command starts it again" "$agentd" list
check "through the service manager" active agentd.service active
# A thousand tasks: each command is one.
commands='run `true`'
for _ in $(seq 19); do commands="$commands; then run \`true\`"; done
i=0
while test $i -lt 50; do
    "$agentd" send coder "$commands" > /dev/null || fail "commands of the agent"
    i=$((i + 1))
done
check "a thousand tasks ran" test "$("$agentd" logs coder --json | grep -c '"kind":"tool_started"')" -ge 1000
await "no cgroup of a task is left" no_task_cgroup
check "uninstall" "$agentd" daemon uninstall
check "no unit is left" gone "$HOME/.config/systemd/user/agentd.service"
check "no socket unit is left" gone "$HOME/.config/systemd/user/agentd.socket"
check "a daemon still runs when it is needed" "$agentd" list
check "and stops" "$agentd" daemon stop

# The tests of supervision, with this back end. Each agent of theirs has a scope.
supervision='adoption:: crash:: exactly_once:: held:: phases:: processes:: stops:: tasks:: time_limit::
    reset:: reset_keeps:: purge:: rewind:: fork:: home_lost:: subagents:: subagent_kills:: user_commands::
    limits:: sandbox:: command_agents:: acp_agents:: acp_cut:: mcp_live::'
note_scopes() {
    while sleep 0.1; do find /sys/fs/cgroup -type d -name 'agentd-*.scope' -printf '%f\n' 2> /dev/null; done
}
supervised() {
    env -u AGENTD_HOME -u AGENTD_SANDBOX AGENTD_TEST_SUPERVISOR=systemd \
        "$suite" --test-threads 2 $supervision > "$dir/suite.log" 2>&1
}
note_scopes > "$dir/scopes" &
noting=$!
check "the tests of supervision pass" supervised
kill "$noting"
grep '^test result' "$dir/suite.log"
sed -n '/^failures:/,$p' "$dir/suite.log"
check "their agents had scopes" test "$(sort -u "$dir/scopes" | wc -l)" -ge 100
await "no scope of theirs is left" no_scope
await "no cgroup of their scopes is left" no_scope_cgroup
exit $failed
