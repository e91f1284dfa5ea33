#!/usr/bin/env bash
# Print the home of a Java that Spark 4 runs on (17 or newer); install one if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/apt.sh

home_if_new_enough() {
  "$1" -XshowSettings:properties -version 2>&1 | awk -F ' = ' '
    /^ *java.home = / { home = $2 }
    /^ *java.specification.version = / { version = $2 }
    END { if (version + 0 >= 17) print home; else exit 1 }'
}

find_java() {
  local java
  for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
    if [ -x "$java" ] && home_if_new_enough "$java"; then
      return
    fi
  done
  return 1
}

if find_java; then
  exit
fi

# Which of them exists depends on the Debian release.
for package in openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless; do
  if apt_install "$package" && find_java; then
    exit
  fi
done

echo "Sooner needs Java 17 or newer." >&2
echo "Install it (on Debian, as root: apt-get install default-jre-headless), or set JAVA_HOME to where it is." >&2
exit 1
