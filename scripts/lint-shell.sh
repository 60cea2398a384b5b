#!/usr/bin/env bash
# Holds every shell script of the repository against shellcheck; .shellcheckrc says what does not apply.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
shellcheck --severity=warning "${scripts[@]}"
