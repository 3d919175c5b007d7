package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestReportsHaveWhatHelpsAndNothingConfidential puts canaries into everything that a
// report is based on: settings, keys, names, files, requests and the log.
func TestReportsHaveWhatHelpsAndNothingConfidential(t *testing.T) {
	t.Parallel()
	const mark = "canary"
	password := filepath.Join(t.TempDir(), mark+"-password")
	must.OK(t, os.WriteFile(password, []byte(mark+"-secret\n"), 0o600))
	s := startServer(t, serverOptions{
		config: "public_url = \"https://" + mark + "-host.example/" + mark + "\"\n[runner]\ncpus = 3\n[containers]\nruntime = \"off\"\nenv = \"TOKEN=" + mark + "\"\n" +
			"[mail]\nhost = \"" + mark + "-mail.example\"\nuser = \"" + mark + "-user\"\npassword_file = \"" + password + "\"\nfrom = \"" + mark + "@lab.example\"\n" +
			"[cors]\norigins = \"https://" + mark + "-portal.example\"\n[limits]\nbody = \"9MiB\"\n",
		algorithms: map[string]string{"shell.toml": shellFile, "broken.toml": "format = 1\ncomand = [\"true\"]\n"},
	})
	u := s.user(mark+"-lab", mark+"-ann@lab.example")
	u.do("PUT", "/upload/"+mark+".txt", nil).want(200)
	u.submit(mark+"-job", "shell", script("echo "+mark+"; exit 3"))
	u.finished(mark + "-job")
	u.do("GET", "/jobs/"+mark, nil).want(404)
	log := filepath.Join(t.TempDir(), "service.log")
	must.OK(t, os.WriteFile(log, []byte(s.log.String()+strings.Join([]string{
		`{"level":"error","time":"2026-11-23T10:00:00Z","message":"disk error","err":"open /home/` + mark + `/x: ` + u.key + ` for ` + mark + `@eve.example","organization":"` + mark + `","user":"` + mark + `","path":"/jobs/` + mark + `","name":"` + mark + `","remote":"` + mark + `"}`,
		`{"level":"warn","time":"2026-11-23T10:00:01Z","message":"post https://` + mark + `:` + mark + `@x.example/a?token=` + mark + ` Authorization: Bearer ` + mark + `"}`,
		"panic: " + mark, "", "goroutine 1 [running]:", "main.main()", "\t/src/molrun/main.go:12 +0x1d", "",
	}, "\n")), 0o600))

	text := s.ok("report", "--log", log, "--output", "-")
	for _, want := range []string{
		"molrun report, 20", "molrun ", "runner.cpus = 3", "limits.body = 9.0 MiB", "public_url is set", "mail.user is set", "containers.env is set",
		"problem  algorithms - ", "broken.toml:2: ", "organizations 1, users 1", "jobs 1 (0 queued), uploads ", `"status":"ready"`,
		"\nprocess_open_fds ", "message=disk error", "level=error", "err=open /home/<user>/x: <key> for <email>", "goroutine 1 [running]:", "main.go:12",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the report", want)
		}
	}
	lower := strings.ToLower(text)
	for _, secret := range []string{mark, "eyj", strings.ToLower(strings.Split(u.key, "_")[2]), "@lab.example"} {
		if i := strings.Index(lower, secret); i >= 0 {
			t.Errorf("the report has %q: …%s…", secret, text[max(0, i-200):min(len(text), i+100)])
		}
	}
	if found := s.secrets.leaks(strings.ReplaceAll(text, "token=<secret>", "")); len(found) > 0 {
		t.Errorf("the report has what requests sent: %q", found)
	}
	if t.Failed() {
		t.Logf("the report:\n%s", text)
	}

	s.stop()
	out := strings.TrimSpace(s.ok("report", "--log", log))
	info, err := os.Stat(filepath.Join(s.dir, out))
	must.OK(t, err)
	if info.Mode().Perm() != 0o600 || !strings.HasPrefix(out, "molrun-report-20") {
		t.Errorf("%s has mode %v", out, info.Mode())
	}
	written, err := os.ReadFile(filepath.Join(s.dir, out))
	must.OK(t, err)
	for _, want := range []string{"no service is running on the data directory", "jobs 1 (0 queued)"} {
		if !strings.Contains(string(written), want) {
			t.Errorf("without a service, no %q in\n%s", want, written)
		}
	}
}
