#!/usr/bin/env bash
# link.sh links|refuses DIR LIBRARY COMPILER FLAGS...: checks that a program built in this way links with LIBRARY and
# runs, or that the linker refuses it with a message that names the ABI namespace which the program looked for.
set -euo pipefail
expectation=$1 dir=$2 library=$3
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$dir"
"$@" -std=c++20 -fPIE -I"$here/../../include" -c "$here/program.cpp" -o "$dir/program.o"
# No -pie and the like: a user has the linker defaults of this compiler.
if "$@" "$dir/program.o" "$library" -pthread -o "$dir/program" >"$dir/link.log" 2>&1; then linked=yes; else linked=no; fi
case $expectation$linked in
  linksyes) "$dir/program" ;;
  linksno) cat "$dir/link.log"; echo "the matching build does not link"; exit 1 ;;
  refusesyes) "$dir/program"; echo "a program of another ABI was linked"; exit 1 ;;
  refusesno)
    grep -E 'undefined (reference|symbol).*pirn::v[0-9]+_[a-z0-9_]+::' "$dir/link.log" || {
      cat "$dir/link.log"
      echo "the linker's message does not name the ABI namespace"
      exit 1
    }
    ;;
esac
