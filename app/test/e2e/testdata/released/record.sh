#!/bin/sh
# Record a data directory of a version, for the test that later ones open it:
#
#   record.sh MOLRUN OUT.tar.gz [FLAG of serve…]
#
# It has jobs that are completed, failed and queued, a batch, an upload, a drain, and in KEY
# the API key of ann@lab.example.
set -eu
BIN=$1 OUT=$2; shift 2
D=$(mktemp -d); cd "$D"; mkdir algs
cat > algs/count.toml <<'T'
format = 1
type = "count"
version = "1"
title = "Count words"
max_runtime = "10m"
[[parameters]]
name = "text"
title = "Text to count"
file = [".txt"]
required = true
[[steps]]
name = "count"
command = ["wc", "-w", "{files.text}"]
stdout = "{out}/words.txt"
[metrics]
words = { file = "words.txt", pattern = '^\s*([0-9]+)', title = "Words" }
T
cat > algs/fail.toml <<'T'
format = 1
type = "fail"
version = "1"
title = "Fail"
max_runtime = "10m"
command = ["false"]
T
export MOLRUN_DATABASE_FILE_SYSTEM=any MOLRUN_ALGORITHMS=$D/algs MOLRUN_LOG_FORMAT=json
"$BIN" serve "$@" --data "$D/data" --listen 127.0.0.1:18999 2> log &
P=$!
for i in $(seq 100); do grep -q '"started"' log && break; sleep 0.1; done
KEY=$("$BIN" key create --data "$D/data" --organization lab --email ann@lab.example 2>/dev/null | head -1)
api() { curl -sS --fail-with-body -H "x-api-key: $KEY" "$@"; }
B=http://127.0.0.1:18999
printf 'one two three\n' > poem.txt
U=$(api -X PUT "$B/upload/poem.txt?folder=inputs")
curl -sS --fail -T poem.txt "$(echo "$U" | sed -n 's/.*"uploadUrl":"\([^"]*\)".*/\1/p')" > /dev/null
api -X POST "$B/upload/$(echo "$U" | sed -n 's/.*"fileId":"\([^"]*\)".*/\1/p')/complete" >/dev/null
sub() { api -H 'Content-Type: application/json' --data "$1" "$B/$2" > /dev/null; }
sub '{"jobName":"counted","type":"count","settings":{"text":"inputs/poem.txt"}}' submit-job
sub '{"jobName":"folded","type":"cg-idp","settings":{"sequences":["ACDEFGHIKLMN"],"steps":2000,"frame_every":1000}}' submit-job
sub '{"jobName":"failed","type":"fail","settings":{}}' submit-job
sub '{"batchName":"both","type":"count","settings":[{"text":"inputs/poem.txt"},{"text":"inputs/poem.txt"}]}' submit-batch
for j in counted folded failed; do for i in $(seq 60); do api "$B/jobs/$j?wait=10s" | grep -q 'COMPLETED\|FAILED' && break; done; done
sleep 2
"$BIN" drain --data "$D/data" --reason "for good" >/dev/null 2>&1 || true
sub '{"jobName":"waiting","type":"count","settings":{"text":"inputs/poem.txt"}}' submit-job
api "$B/jobs?includeSubjobs=true" > "$D/jobs.json"
kill -TERM $P; wait $P || true
rm -rf data/control.sock data/audit.log data/etc
echo "$KEY" > data/KEY
tar -C data --sort=name --mtime=@0 --owner=0 --group=0 -czf "$OUT" .
cat jobs.json | head -c 600; echo; ls -la "$OUT"; tail -3 log | cut -c1-200
