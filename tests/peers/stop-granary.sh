#!/usr/bin/env bash
# stop-granary.sh DIR: ends what start-granary.sh DIR started, the way a user would (SIGTERM).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/processes.sh"
stop_process "${1:?usage: stop-granary.sh DIR}" granary
