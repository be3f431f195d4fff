#!/usr/bin/env bash
# Installs what the tests and the quick start need on a fresh Debian machine: FUSE, a few command-line tools, and the Parquet
# readers that the tests compare. Run it as often as you like: what is there is left alone.
#
#   scripts/install.sh            what a mount needs, and DuckDB to look into it
#   scripts/install.sh --tests    the readers of tests/readers and the tools of the test suites too
#
# Rust itself is not installed here: have cargo on the PATH (https://rustup.rs).
# Everything but Debian packages goes below target/, so `rm -rf target` removes it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
tests=no
[[ ${1:-} == --tests ]] && tests=yes

say() { printf 'install: %s\n' "$*"; }

# Reached by sudo where we are not root; a machine with neither gets told which packages to ask for.
as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif command -v sudo > /dev/null; then
        sudo "$@"
    else
        say "neither root nor sudo: please have these Debian packages installed: ${packages[*]}"
        return 1
    fi
}

# A Debian package for each command that is missing.
packages=()
need() { # command package
    command -v "$1" > /dev/null || packages+=("$2")
}
need fusermount3 fuse3
need cc gcc
need python3 python3
python3 -c 'import ensurepip' 2> /dev/null || packages+=(python3-venv)
if [[ $tests == yes ]]; then
    need bats bats
    need shellcheck shellcheck
    need jq jq
    need rsync rsync
    need java default-jdk-headless
    need javac default-jdk-headless
    need mvn maven
    need node nodejs
    need npm npm
    need mandoc mandoc
    need tmux tmux
    need openssl openssl
    compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null || packages+=(postgresql)
fi
if ((${#packages[@]})); then
    say "Debian packages: ${packages[*]}"
    as_root apt-get update -qq || say "apt-get update failed; going on with the package lists there are"
    for package in "${packages[@]}"; do
        # One by one: a package that this Debian lacks (another Java, say) does not keep the others away.
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" \
            > /dev/null || say "NOT INSTALLED: $package"
    done
fi
command -v cargo > /dev/null || {
    say "cargo is not on the PATH: install Rust first"
    exit 1
}

# The Python readers, in a virtual environment of their own. The stamp holds what was installed, so that a changed
# requirements file is noticed.
python_readers() { # name requirements...
    local venv=$target/$1 stamp=$target/$1/.installed wanted
    shift
    wanted=$(printf '%s\n' "$@")
    [[ -f $stamp && $(< "$stamp") == "$wanted" ]] && return 0
    say "Python packages into ${venv#"$root"/} ($# of them; about a minute)"
    [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
    if "$venv/bin/pip" install -q --disable-pip-version-check "$@"; then
        printf '%s' "$wanted" > "$stamp"
        return 0
    fi
    # Some package is missing for this Python or this processor: take those there are; the tests count what they skip.
    local requirement
    for requirement in "$@"; do
        "$venv/bin/pip" install -q --disable-pip-version-check "$requirement" || say "NOT INSTALLED: $requirement"
    done
}
mkdir -p "$target"
mapfile -t requirements < <(grep -v '^#' "$root/tests/readers/requirements.txt")
if [[ $tests == yes ]]; then
    python_readers venv "${requirements[@]}"
    mapfile -t requirements < <(grep -v '^#' "$root/tests/servers/requirements.txt")
    python_readers venv-servers "${requirements[@]}"
    mapfile -t requirements < <(grep -v '^#' "$root/tests/servers/lakana/requirements.txt")
    python_readers venv-lakana "${requirements[@]}"
elif [[ ! -f $target/venv/.installed ]]; then
    mapfile -t requirements < <(grep '^duckdb==' "$root/tests/readers/requirements.txt")
    python_readers venv-duckdb "${requirements[@]}"
fi

# What npm has: a reader in JavaScript, and Azure's blobs for tests/stores.
node_packages() { # directory of tests, name below target/, what it is
    local wanted=$root/tests/$1/package.json there=$target/$2
    cmp -s "$wanted" "$there/package.json" && return 0
    say "$3 into ${there#"$root"/}"
    mkdir -p "$there"
    if command -v npm > /dev/null && cp "$wanted" "$there/" && (cd "$there" && npm install --silent --no-audit --no-fund); then
        return 0
    fi
    rm -f "$there/package.json"
    say "NOT INSTALLED: $3"
}
if [[ $tests == yes ]]; then
    node_packages readers node hyparquet
    node_packages servers node-servers Azurite
    if ! bash "$root/tests/servers/rest/start.sh" --install > /dev/null; then
        say "NOT INSTALLED: the reference REST catalog"
    fi
fi

if [[ ! -e /dev/fuse ]]; then
    say "there is no /dev/fuse: load the kernel's fuse module (modprobe fuse), or give the container the device"
    exit 1
fi
say "ready"
