#!/usr/bin/env bash
# A private PostgreSQL to test against: empty at every start, on a socket only, gone after stop.
#
#   export SOONER_TEST_POSTGRES=$(scripts/postgres.sh start)
#   scripts/postgres.sh stop
#
# A second argument names the server, for those who want more than one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/apt.sh

dir=/tmp/sooner-postgres-${2:-$(id -un)}

# PostgreSQL refuses to run as root.
as_owner() {
  if [ "$(id -u)" -eq 0 ]; then
    runuser -u postgres -- "$@"
  else
    "$@"
  fi
}

find_programs() {
  local found
  found=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
  [ -x "$found" ] && bin=$(dirname "$found")
}

running() { as_owner "$bin/pg_ctl" -D "$dir/data" status >/dev/null 2>&1; }

start() {
  as_owner rm -rf "$dir"
  as_owner mkdir -m 700 "$dir"
  as_owner "$bin/initdb" -D "$dir/data" -U sooner --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync >/dev/null
  as_owner "$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -s -w start \
    -o "-c unix_socket_directories=$dir -c listen_addresses= -c fsync=off"
  as_owner "$bin/createdb" -h "$dir" -U sooner sooner
}

stop() {
  if running; then
    as_owner "$bin/pg_ctl" -D "$dir/data" -m immediate -s stop
  fi
  as_owner rm -rf "$dir"
}

case ${1:-} in
  start)
    find_programs || { apt_install postgresql && find_programs; } || {
      echo "PostgreSQL is not installed. As root: apt-get install postgresql" >&2
      exit 1
    }
    cd / # the owner may not be able to read where we are
    running || start >&2
    echo "postgresql+psycopg://sooner@/sooner?host=$dir"
    ;;
  stop)
    find_programs || exit 0
    cd /
    stop >&2
    ;;
  *)
    echo "usage: scripts/postgres.sh start|stop [name]" >&2
    exit 2
    ;;
esac
