#!/bin/sh
# Installs the program `runner`:  sh install.sh [FOLDER|URL]
# The archives and SHA256SUMS lie in FOLDER or below URL; by default in the folder of this script. The program goes to
# $PREFIX/bin, pipelines and licences to $PREFIX/share/runner; PREFIX is ~/.local unless it is set.
# Where SIGNERS names a file of `ssh-keygen`'s allowed signers, SHA256SUMS.sig has to be by one of them.
set -eu
umask 022

fail() {
  printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2
  exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# fetch NAME: copies a file of the source to the temporary folder.
fetch() {
  case "$from" in
    http://127.0.0.1:* | http://localhost:* | https://*)
      if has curl; then
        curl -fsSL --proto-redir =https -o "$temporary/$1" "$from/$1"
      elif has wget; then
        wget -q -O "$temporary/$1" "$from/$1"
      else
        fail 'neither curl nor wget is installed' "download $1 and SHA256SUMS, and run: sh install.sh FOLDER"
      fi
      ;;
    http://*) fail "$from is not encrypted: anyone on the way could replace the program" 'give an https address' ;;
    *) cp "$from/$1" "$temporary/$1" ;;
  esac || fail "cannot get $1 from $from" 'give the folder or the URL of a release: sh install.sh FOLDER'
}

from="${1:-$(dirname "$0")}"
from="${from%/}"
prefix="${PREFIX:-${HOME:+$HOME/.local}}"
case "$prefix" in
  /*) ;;
  '') fail 'neither PREFIX nor HOME is set' 'PREFIX=/usr/local sh install.sh' ;;
  *) prefix="$(pwd)/$prefix" ;;
esac

case "$(uname -s)" in
  Linux) ;;
  *) fail "there is no archive for $(uname -s)" 'build it in a clone: cargo install --path runner/cli' ;;
esac
machine="$(uname -m)"
case "$machine" in
  x86_64 | amd64) target=x86_64-unknown-linux-musl ;;
  aarch64 | arm64) target=aarch64-unknown-linux-musl ;;
  *) fail "there is no archive for $machine" 'there are programs for x86_64 and aarch64; others build it in a clone' ;;
esac

temporary="$(mktemp -d)" || fail 'cannot create a temporary folder' 'create /tmp, or set TMPDIR'
trap 'rm -rf "$temporary" "$prefix/bin/.runner.$$"' EXIT
trap 'exit 1' HUP INT TERM

fetch SHA256SUMS
if [ -n "${SIGNERS:-}" ]; then
  has ssh-keygen || fail 'ssh-keygen is not installed, so the signature cannot be checked' 'install openssh-client'
  fetch SHA256SUMS.sig
  signature="$temporary/SHA256SUMS.sig"
  signer="$(ssh-keygen -Y find-principals -f "$SIGNERS" -s "$signature" 2>/dev/null | head -n 1)"
  [ -n "$signer" ] && ssh-keygen -Y verify -f "$SIGNERS" -I "$signer" -n file -s "$signature" <"$temporary/SHA256SUMS" >&2 ||
    fail "SHA256SUMS of $from is signed by nobody whom $SIGNERS allows" 'download it again; nothing was installed'
fi
archive="$(sed -n "s/^[0-9a-f]\{64\}  \(runner-[0-9A-Za-z.+-]*-$target\.tar\.gz\)\$/\1/p" "$temporary/SHA256SUMS")"
[ "$(printf '%s\n' "$archive" | grep -c .)" = 1 ] ||
  fail "SHA256SUMS of $from does not name one archive for $target" 'give the folder or the URL of one release'
fetch "$archive"
expected="$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p" "$temporary/SHA256SUMS")"
if has sha256sum; then
  found="$(sha256sum <"$temporary/$archive")"
elif has shasum; then
  found="$(shasum -a 256 <"$temporary/$archive")"
else
  fail 'neither sha256sum nor shasum is installed' 'install coreutils; nothing is installed unchecked'
fi
[ "${found%% *}" = "$expected" ] ||
  fail "the checksum of $archive is ${found%% *}, not $expected" 'download it again; nothing was installed'

tar -xzf "$temporary/$archive" -C "$temporary"
unpacked="$temporary/${archive%.tar.gz}"
version="$("$unpacked/bin/runner" --version)" ||
  fail "the program does not start in $temporary" "it is for Linux on $machine; where programs may not run there, set TMPDIR"
mkdir -p "$prefix/bin" "$prefix/share/runner" 2>/dev/null ||
  fail "cannot write to $prefix" 'PREFIX=DIRECTORY sh install.sh installs elsewhere'
cp -R "$unpacked/share/runner/." "$prefix/share/runner/"
# A running program's file cannot be written, but another can take its name.
cp "$unpacked/bin/runner" "$prefix/bin/.runner.$$"
mv -f "$prefix/bin/.runner.$$" "$prefix/bin/runner"

printf '%s is installed: %s\n' "$version" "$prefix/bin/runner"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) printf "It is not on PATH yet; type: export PATH=\"%s:\$PATH\"\n" "$prefix/bin" ;;
esac
printf 'Next: runner exec %s --profile quick\n' "$prefix/share/runner/pipelines/rppo_options.yaml"
