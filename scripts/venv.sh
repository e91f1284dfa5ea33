#!/usr/bin/env bash
# Make .venv, unless a good one is there. PYTHON names the interpreter to use.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/apt.sh

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

can_make_environments() { "$1" -c 'import ensurepip' 2>/dev/null; }

find_python() {
  local python
  # Debian's own is built with optimisation; one that a user compiled often is not, and a fifth slower.
  if [ -z "${PYTHON:-}" ] && new_enough /usr/bin/python3 && can_make_environments /usr/bin/python3; then
    echo /usr/bin/python3
    return
  fi
  for python in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14}; do
    if new_enough "$python"; then
      echo "$python"
      return
    fi
  done
  return 1
}

if new_enough .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; then
  exit
fi

if ! python=$(find_python); then
  [ -n "${PYTHON:-}" ] || apt_install python3-venv || true
  python=$(find_python) || {
    echo "Sooner needs Python 3.11 or newer${PYTHON:+, and $PYTHON is not}." >&2
    echo "Install it (on Debian, as root: apt-get install python3-venv), or name one: make setup PYTHON=/path/to/python3" >&2
    exit 1
  }
fi

# Debian keeps the part of Python that makes environments in a package of its own.
if ! can_make_environments "$python"; then
  package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
  apt_install "$package" || {
    echo "$python cannot make environments. As root: apt-get install $package. Then try again." >&2
    exit 1
  }
fi

"$python" -m venv --clear .venv
