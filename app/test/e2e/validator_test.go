package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"molrun/app/test/must"
	"molrun/app/test/need"
)

// validatorFile has a validator that must only see settings without faults: it fails
// if n is not a number.
const validatorFile = `
format = 1
type = "picky"
version = "1"
title = "Refuse 3"
command = ["true"]

[[parameters]]
name = "n"
type = "integer"

[validate]
command = ["sh", "-c", 'read -r line; case "$line" in *3*) echo "[{{\"loc\":[\"n\"],\"msg\":\"is three\",\"type\":\"value\"}}]";; *[0-9]*) echo "[]";; *) exit 1;; esac']
`

func TestSchemaAndValidatorFaultsAreReportedTogether(t *testing.T) {
	t.Parallel()
	u := startServer(t, serverOptions{algorithms: map[string]string{"picky.toml": validatorFile}}).user("lab", "ann@lab.example")
	want := []string{"body.settings.0.n: must be a whole number, got text", "body.settings.2.n: is three"}
	got := u.do("POST", "/submit-batch", batchBody("b", "picky", `{"n":"x"}`, `{"n":4}`, `{"n":3}`)).want(422).details()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got = u.do("POST", "/submit-job", `{"jobName":" ","type":"picky","settings":{"n":3}}`).want(422).details()
	if len(got) != 2 || got[1] != "body.settings.n: is three" {
		t.Errorf("with a bad name: %q", got)
	}
}

// probeFile has a validator that reports what it could do, as one letter each.
const probeFile = `
format = 1
type = "curious"
version = "1"
title = "Look around"
command = ["true"]

[[parameters]]
name = "input"
file = [".txt"]
required = true

[sandbox]
read = ["@DIR@/gates"]

[validate]
command = ["sh", "-c", '''
did=
try() {{ if "$@" > /dev/null 2>&1; then did="$did $letter"; fi; }}
letter=I; try grep -q hello "$1"
letter=G; try ls '@DIR@/gates/here'
letter=H; try sh -c 'echo x > "$HOME/x" && rm "$HOME/x" && echo x > /tmp/x'
letter=C; try cat '@DIR@/canary'
letter=D; try cat '@DIR@/data/jobs.db'
letter=W; try sh -c 'echo x >> "$0"' "$1"
letter=U; try sh -c 'echo x > /usr/spoilt'
letter=N; try grep -v -e lo: -e '|' /proc/net/dev
letter=P; try kill -0 @PID@
letter=L; try ls -d /root /home
setsid sleep 7787 > /dev/null 2>&1 &
printf '[{{"loc":["input"],"msg":"did%s"}}]' "$did"
''', "check", "{files.input}"]
`

func TestValidatorsRunInASandbox(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(probeFile, "@PID@", strconv.Itoa(os.Getpid()))
	s := startServer(t, serverOptions{algorithms: map[string]string{"curious.toml": text}})
	if !s.sandboxed() {
		need.Skip(t, "bubblewrap is not available")
	}
	must.OK(t, os.WriteFile(filepath.Join(s.dir, "canary"), []byte("secret of the server\n"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(s.dir, "gates", "here"), nil, 0o600))
	u := s.user("lab", "ann@lab.example")
	u.upload("in.txt", "hello\n")
	got := u.do("POST", "/submit-job", `{"jobName":"j","type":"curious","settings":{"input":"inputs/in.txt"}}`).want(422).details()
	if want := []string{"body.settings.input: did I G H"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q: only its own input, directory and [sandbox] read", got, want)
	}
	s.eventually("the validator's processes are gone", func() bool { return s.alive("sleep\x007787") == 0 })
}
