package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// slowFile has a validator that waits for a gate, unless n is 0, and records how many
// validators are running.
const slowFile = `
format = 1
type = "slow"
version = "1"
title = "Wait for a gate"
command = ["true"]

[[parameters]]
name = "n"
type = "integer"

[validate]
command = ["sh", "-c", '''
read -r line
touch scratch "@DIR@/gates/runs-$$"
ls @DIR@/gates | grep -c runs- >> @DIR@/counts
case "$line" in *0*) ;; *) while [ ! -e @DIR@/gates/open ]; do sleep 0.02; done;; esac
rm "@DIR@/gates/runs-$$"
echo "[]"
''']
`

// check validates settings of slow. It does not fail the test, so that goroutines can
// call it.
func (u user) check(n int) (status int, body string) {
	r, err := http.NewRequestWithContext(u.t.Context(), "POST", u.base+"/validate-job",
		strings.NewReader(fmt.Sprintf(`{"jobName":"j","type":"slow","settings":{"n":%d}}`, n)))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("x-api-key", u.key)
	response, err := u.http.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// checks starts count validations at once. Each sends its status and body on the channel.
func (u user) checks(count, n int) <-chan string {
	answers := make(chan string, count)
	for range count {
		go func() {
			status, body := u.check(n)
			answers <- fmt.Sprint(status, " ", body)
		}()
	}
	return answers
}

// sleeping reports whether a process named sleep is running that has text in its
// environment.
func (s *instance) sleeping(text string) bool {
	return slices.ContainsFunc(s.processes(text), func(pid int) bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return string(name) == "sleep\n"
	})
}

// TestCrashLeavesNothingOfValidators kills the service while programs validate settings,
// and checks that the next start removes their directories.
func TestCrashLeavesNothingOfValidators(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []string{"off", "auto"} {
		temp := t.TempDir()
		s := startServer(t, serverOptions{
			algorithms: map[string]string{"slow.toml": strings.ReplaceAll(slowFile, "[validate]", "[sandbox]\nread = [\"@DIR@\"]\n[validate]")},
			config:     "[runner]\nsandbox = \"" + sandbox + "\"\n", env: []string{"TMPDIR=" + temp},
		})
		tmp := filepath.Join(s.data(), "uploads", "tmp")
		names := func(dir string) []os.DirEntry {
			entries, err := os.ReadDir(dir)
			must.OK(t, err)
			return entries
		}
		answers := s.user("lab", "ann@lab.example").checks(2, 1)
		s.eventually("a program checks settings", func() bool { return s.sleeping(tmp) })
		s.kill()
		for range 2 {
			<-answers
		}
		if left := names(temp); len(left) > 0 {
			t.Errorf("%s: not cleaned up: %v", sandbox, left)
		}
		s.eventually("the programs have ended with the service", func() bool { return len(s.processes(tmp)) == 0 })
		s.start()
		s.eventually("the next start has swept", func() bool { return len(names(tmp)) == 0 })
	}
}

// hungryFile has a validator whose child needs 100 MiB.
const hungryFile = `
format = 1
type = "hungry"
version = "1"
title = "Use memory"
command = ["true"]

[validate]
command = ["sh", "-c", '''
head -c 100000000 /dev/zero | tail > /dev/null && did=much || did=little
printf '[{{"loc":[],"msg":"%s"}}]' "$did"
''']
`

func TestMemoryOfValidatorsIsLimited(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ sandbox, memory, want string }{
		{"off", "0", "much"}, {"auto", "64MiB", "little"},
	} {
		s := startServer(t, serverOptions{
			algorithms: map[string]string{"hungry.toml": hungryFile},
			config:     fmt.Sprintf("[runner]\nsandbox = %q\n[validators]\nmemory = %q\n", tt.sandbox, tt.memory),
		})
		got := s.user("lab", "ann@lab.example").do("POST", "/submit-job", `{"jobName":"j","type":"hungry","settings":{}}`).want(422).details()
		if want := []string{"body.settings: " + tt.want}; !slices.Equal(got, want) {
			t.Errorf("sandbox %s, memory %s: %q, want %q", tt.sandbox, tt.memory, got, want)
		}
	}
}

// TestBuiltinCheckFindsWhatItsProcessFinds compares the built-in validator with a copy of
// its algorithm. In the copy, only the command differs, so that the service starts it as
// a process.
func TestBuiltinCheckFindsWhatItsProcessFinds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../algorithm/builtin/cg-idp.toml")
	must.OK(t, err)
	twin := strings.NewReplacer(
		`type = "cg-idp"`, `type = "twin"`, `command = ["{molrun}", "engine", "cg-idp", "--validate"`, `command = ["/usr/bin/env", "{molrun}", "engine", "cg-idp", "--validate"`,
	).Replace(string(text))
	if strings.Count(twin, "/usr/bin/env") != 1 {
		t.Fatal("the command of the validator has changed")
	}
	s := startServer(t, serverOptions{algorithms: map[string]string{"twin.toml": twin}})
	u := s.user("lab", "ann@lab.example")
	for name, text := range badFiles() {
		u.upload(name, text)
	}
	all := []string{`{"sequences":["ACDEFG"]}`, `{"sequences":["<&>\u2028ACDEFG\u0000"]}`, `{"sequences":["ACDEFG"],"<\ud7ff>":1}`}
	for _, tt := range badSettings {
		all = append(all, tt.settings)
	}
	for _, settings := range all {
		ask := func(typ string) string {
			return string(u.do("POST", "/validate-job", fmt.Sprintf(`{"jobName":"j","type":%q,"settings":%s}`, typ, settings)).want(200).body)
		}
		must.Equal(t, settings+", built in next to its process", ask("cg-idp"), ask("twin"))
	}
}
