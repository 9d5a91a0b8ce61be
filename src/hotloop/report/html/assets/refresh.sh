#!/usr/bin/env bash
# Makes echarts.min.js anew: Apache ECharts (Apache-2.0), only the parts named in echarts_parts.js. Needs Node.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --no-audit --no-fund echarts@6.1.0 esbuild@0.28.2
cp "$here/echarts_parts.js" entry.js
npx esbuild entry.js --bundle --minify --charset=utf8 --format=iife --global-name=echarts \
  --legal-comments=eof --outfile="$here/echarts.min.js"
