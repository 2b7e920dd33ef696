#!/usr/bin/env bash
# Checks that the published clients of each interface of `webshop serve` work unchanged.
#
#   scripts/clients.sh [--bin FILE] [--folder DIR] [--pictures DIR] [CLIENT…]
#
#   --bin FILE       the binary [target/release/webshop]
#   --folder DIR     where clients are installed; a kept folder makes later runs quick [a temporary one]
#   --pictures DIR   screenshots of the browser check
#   CLIENT…          only these: openenv, verifiers, agentgym, mcp, mcp2, conformance, openai, site, original, browser
#
# Installs the clients of scripts/clients/ by pinned version, from PyPI (a virtual environment for each .txt) and from
# npm (package-lock.json). They drive a server of their own with recorded episodes, and each line of stdout names a
# client that saw what the episodes recorded. For developers only: no other test needs it.
#
# Needs Python 3.11 as PYTHON [python3], Node 20 with npm, and Chromium with its driver (Debian: chromium,
# chromium-driver) as CHROMIUM [/usr/bin/chromium] and CHROMEDRIVER [/usr/bin/chromedriver]. AgentGym and the original
# shop are not on PyPI: their clients run if AGENTGYM and WEBSHOP_ORIGINAL name checkouts of github.com/WooooDyy/AgentGym
# and github.com/princeton-nlp/WebShop. The original's has port 3000 built in.
#
# Exit codes: 0 all passed, 1 a client failed and is named; the others run nevertheless. 2 wrong usage, or a binary that
# cannot record episodes.
set -uo pipefail
here=$(cd "$(dirname "$0")/clients" && pwd)

: "${PYTHON:=python3}" "${CHROMIUM:=/usr/bin/chromium}" "${CHROMEDRIVER:=/usr/bin/chromedriver}"
all=(openenv verifiers agentgym mcp mcp2 conformance openai site original browser)
bin=$here/../../target/release/webshop folder='' pictures='' wanted=()
while [ $# -gt 0 ]; do
  case $1 in
    --bin) bin=$2 && shift 2 ;;
    --folder) folder=$2 && shift 2 ;;
    --pictures) pictures=$2 && shift 2 ;;
    *)
      [[ " ${all[*]} " == *" $1 "* ]] || { echo "there is no client $1; the clients are ${all[*]}" >&2; exit 2; }
      wanted+=("$1") && shift
      ;;
  esac
done
[ -x "$bin" ] || { echo "there is no binary $bin; build it, or name it by --bin" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -n "$folder" ]; then
  mkdir -p "$folder"
else
  folder=$work/installed && mkdir "$folder"
fi
folder=$(cd "$folder" && pwd)
WEBSHOP_BIN=$(realpath "$bin")
export PYTHONDONTWRITEBYTECODE=1 WEBSHOP_BIN WEBSHOP_EPISODES=$work/episodes.jsonl WEBSHOP_MODEL=$work/model CHROMIUM CHROMEDRIVER

# Installs the packages of NAME.txt, unless they are there, and runs check_NAME.py with them.
python() { # argument: name
  local environment=$folder/$1
  if ! cmp -s "$here/$1.txt" "$environment/installed.txt"; then
    rm -rf "$environment"
    "$PYTHON" -m venv "$environment" &&
      "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$here/$1.txt" &&
      cp "$here/$1.txt" "$environment/installed.txt" || return
  fi
  PATH=$environment/bin:$PATH "$environment/bin/python" "$here/check_$1.py"
}

# Installs the packages of package-lock.json, unless they are there.
npm_packages() {
  cmp -s "$here/package-lock.json" "$folder/npm/package-lock.json" && [ -d "$folder/npm/node_modules" ] && return
  mkdir -p "$folder/npm" && cp "$here"/package{,-lock}.json "$folder/npm/" &&
    npm --prefix "$folder/npm" ci --silent --no-audit --no-fund
}

client() { # argument: name
  case $1 in
    agentgym)
      if [ -n "${AGENTGYM:-}" ]; then python agentgym; else echo "agentgym: left out, AGENTGYM names no checkout"; fi
      ;;
    original)
      if [ -n "${WEBSHOP_ORIGINAL:-}" ]; then python original; else echo "original: left out, WEBSHOP_ORIGINAL names no checkout"; fi
      ;;
    conformance) npm_packages && WEBSHOP_NPM=$folder/npm "$PYTHON" "$here/check_conformance.py" ;;
    browser) npm_packages && cp "$here/browser.mjs" "$folder/npm/" && node "$folder/npm/browser.mjs" ${pictures:+"$pictures"} ;;
    *) python "$1" ;;
  esac
}

# Records the episodes, and makes a model.
prepare() {
  "$WEBSHOP_BIN" rollout --policy oracle --split test --episodes 12 --out "$work/oracle.jsonl" &&
    "$WEBSHOP_BIN" rollout --policy random --split test --episodes 4 --out "$work/random.jsonl" &&
    cat "$work/oracle.jsonl" "$work/random.jsonl" >"$WEBSHOP_EPISODES" &&
    "$WEBSHOP_BIN" model new --shape tiny --out "$WEBSHOP_MODEL"
}
prepare >"$work/log" 2>&1 || { tail -40 "$work/log" >&2; exit 2; }

failed=()
[ ${#wanted[@]} -gt 0 ] || wanted=("${all[@]}")
for name in "${wanted[@]}"; do
  if ! client "$name" 2>"$work/$name.log"; then
    echo "$name: FAILED"
    tail -40 "$work/$name.log" >&2
    failed+=("$name")
  fi
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
