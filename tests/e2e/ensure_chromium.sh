#!/usr/bin/env bash
# Makes sure that the tests find a Chromium: Debian's package where it can be installed, a clear failure elsewhere.
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update --quiet=2
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 chromium fonts-liberation fonts-dejavu-core </dev/null
  exit 0
fi
echo "The end-to-end tests need Chromium: install the package 'chromium' (or Google Chrome) and run again." >&2
exit 1
