# shellcheck shell=bash
# Sourced by the other scripts.

# Install Debian packages if this user may; everything apt says goes to stderr.
apt_install() {
  local as_root=()
  command -v apt-get >/dev/null || return 1
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || return 1
    as_root=(sudo -n)
  fi
  echo "Installing $* from Debian's packages" >&2
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  "${as_root[@]}" update </dev/null >&2 || true # an older list may still do
  "${as_root[@]}" install -y --no-install-recommends "$@" </dev/null >&2
}
