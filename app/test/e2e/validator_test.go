package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"molrun/app/test/must"
)

// curiousFile has a validator that reports each thing it was able to do as one letter.
const curiousFile = `
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
	s := plain(t)
	if !s.sandboxed() {
		must.Skip(t, "bubblewrap is not available")
	}
	must.OK(t, os.WriteFile(filepath.Join(s.dir, "canary"), []byte("secret of the server\n"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(s.dir, "gates", "here"), nil, 0o600))
	u := s.user("lab", "ann@lab.example")
	u.upload("in.txt", "hello\n")
	got := u.do("POST", "/submit-job", `{"jobName":"j","type":"curious","settings":{"input":"inputs/in.txt"}}`).want(422).details()
	if want := []string{"body.settings.input: did I G H"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q: only its own input, directory and [sandbox] read", got, want)
	}
	s.eventually("the validator's processes have exited", func() bool { return s.alive("sleep\x007787") == 0 })
}
