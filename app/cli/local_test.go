package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/client"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

// directory is a data directory without a running service. Commands run in the test
// process.
type directory struct {
	*fixture.Site
	t *testing.T
}

// newDirectory returns a directory with an upload, a completed job, a failed job, a
// completed batch and a queued job.
func newDirectory(t *testing.T) *directory {
	t.Helper()
	d := &directory{fixture.New(t, app.Options{}), t}
	u := d.Upload(fixture.Ann, "in.txt", "hello\n")
	d.Complete(d.Submit(fixture.Ann, "done", `{"input":"`+string(u.ID)+`"}`), map[string]string{"out.txt": strings.Repeat("x", 1000)})
	d.Fail(d.Submit(fixture.Bob, "failed", `{}`), map[string]string{"log": "oh\n"})
	_, rows := d.SubmitBatch(fixture.Eve, "batch", `{}`, `{}`)
	d.Complete(rows[0], map[string]string{"out.txt": "1"})
	d.Complete(rows[1], map[string]string{"out.txt": "22"})
	d.Submit(fixture.Ann, "waits", `{}`)
	d.Close()
	must.OK(t, os.Chmod(d.Data, 0o700))
	must.OK(t, os.WriteFile(d.configFile(), []byte(fmt.Sprintf("data = %q\n[database]\nfile_system = \"any\"\n", d.Data)), 0o600))
	return d
}

// configFile returns the path of the configuration file for --config, next to the data
// directory.
func (d *directory) configFile() string { return d.Data + ".toml" }

// run runs a command with this configuration.
func (d *directory) run(args ...string) (out, errs string, code int) {
	d.t.Helper()
	return within(d.t, "", append(args, "--config", d.configFile())...)
}

// within runs a command in the test process. Its error output omits the line that names
// the data directory.
func within(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	out, errs, code = withinExactly(t, in, args...)
	if strings.HasPrefix(errs, "data directory: ") {
		_, errs, _ = strings.Cut(errs, "\n")
	}
	return out, errs, code
}

func withinExactly(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	root := newRoot()
	var stdout, stderr bytes.Buffer
	root.SetIn(strings.NewReader(in))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetArgs(args)
	err := findCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(t.Context())
	}
	if err != nil && !errors.As(err, new(silent)) {
		fmt.Fprintln(&stderr, "molrun:", fault.Text(err))
	}
	return stdout.String(), stderr.String(), exitCode(err)
}

// masks replace text that varies between runs.
var masks = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`/tmp/[^\s]*/`), "DIR/"},
	{regexp.MustCompile(`\d{8}T\d{6}Z(-\d+)?`), "NAME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d`), "DAY"},
	{regexp.MustCompile(`in [\d.]+m?s`), "in TIME"},
	{regexp.MustCompile(`"[a-z2-7]{12}"`), `"KEYID"`},
	{regexp.MustCompile(`with key [A-Z2-7]{8}\n`), "with key KID\n"},
	{regexp.MustCompile(`[\d.]+ [KMGT]iB`), "SIZE"},
	{regexp.MustCompile(` +`), " "},
	{regexp.MustCompile(` \n`), "\n"},
}

// wantOutput compares the masked output of a command with the expected text.
func wantOutput(t *testing.T, what, got, want string) {
	t.Helper()
	for _, m := range masks {
		got = m.what.ReplaceAllString(got, m.by)
	}
	must.Equal(t, what, got, want)
}

func TestCommandsOnADataDirectory(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	backups := filepath.Join(t.TempDir(), "backups")
	restored := filepath.Join(t.TempDir(), "restored")
	for _, tt := range []struct {
		args      string
		out, errs string
		code      int
	}{
		{"key list", "ID ORG EMAIL ROLE STATE LAST USED NAME\n", "", 0},
		{"drain --reason repair", "", "the queue has been paused since TIME; to resume: molrun resume\n", 0},
		{"resume", "", "the queue is resumed\n", 0},
		{"secret rotate", "", "links are now signed with key KID\n", 0},
		{
			"storage report", "ORGANIZATION JOBS QUEUED RESULTS UPLOADS THEIR SIZE IN ALL\n" +
				"lab 3 1 1000 bytes 1 6 bytes 1006 bytes\nother 2 0 3 bytes 0 0 bytes 3 bytes\nall 5 1 1003 bytes 1 6 bytes 1009 bytes\n\n" +
				"disk: SIZE free of SIZE, SIZE must stay free\n", "", 0,
		},
		{
			"storage report --by user", "ORGANIZATION USER JOBS QUEUED RESULTS UPLOADS THEIR SIZE IN ALL\n" +
				"lab ann@lab.example 2 1 1000 bytes 1 6 bytes 1006 bytes\nother ann@lab.example 2 0 3 bytes 0 0 bytes 3 bytes\nlab bob@lab.example 1 0 0 bytes 0 0 bytes 0 bytes\n" +
				"all 5 1 1003 bytes 1 6 bytes 1009 bytes\n\ndisk: SIZE free of SIZE, SIZE must stay free\n", "", 0,
		},
		{
			"storage report --by algorithm", "ALGORITHM JOBS QUEUED RESULTS UPLOADS THEIR SIZE IN ALL\n" +
				"echo 5 1 1003 bytes 0 0 bytes 1003 bytes\n(uploads) 0 0 0 bytes 1 6 bytes 6 bytes\nall 5 1 1003 bytes 1 6 bytes 1009 bytes\n\ndisk: SIZE free of SIZE, SIZE must stay free\n", "", 0,
		},
		{
			"prune --older-than 0s --dry-run", "JOB ORGANIZATION USER ALGORITHM STATUS ENDED SIZE WITH UPLOADS\n" +
				"done lab ann@lab.example echo COMPLETED DAY SIZE inputs/in.txt\nfailed lab bob@lab.example echo FAILED DAY 3 bytes\n" +
				"batch (2 rows) other ann@lab.example echo COMPLETED DAY 369 bytes\nwould be deleted: 3 jobs and 1 uploads, SIZE\n", "", 0,
		},
		{
			"prune --older-than 0s --failed --yes", "JOB ORGANIZATION USER ALGORITHM STATUS ENDED SIZE WITH UPLOADS\n" +
				"failed lab bob@lab.example echo FAILED DAY 3 bytes\ndeleted: 1 jobs, 3 bytes\n", "", 0,
		},
		{"prune --older-than 0s --failed --yes", "deleted: 0 jobs, 0 bytes\n", "", 0},
		{"check", "5 jobs, 1 uploads, 0 keys, sizes of 12 files (SIZE): 0 problems\n", "", 0},
		{"check --deep", "5 jobs, 1 uploads, 0 keys, bytes of 12 files (SIZE): 0 problems\n", "", 0},
		{"check --repair", "5 jobs, 1 uploads, 0 keys, sizes of 12 files (SIZE): 0 problems\n", "", 0},
		{"compact", "DIR/jobs.db: SIZE before, SIZE after\n", "", 0},
		{
			"backup " + backups, "DIR/NAME: 5 jobs, 1 uploads, 13 files of SIZE (SIZE copied) in TIME\n",
			"DIR/backups has no backups yet; making a first, full backup\n", 0,
		},
		{"backup " + backups + " --deep", "DIR/NAME: 5 jobs, 1 uploads, 13 files of SIZE (SIZE copied) in TIME\n", "", 0},
		{
			"restore " + backups + " --list", "BACKUP TAKEN JOBS UPLOADS SIZE NEW PROBLEMS\nNAME TIME 5 1 SIZE SIZE 0\nNAME TIME 5 1 SIZE SIZE 0\n", "", 0,
		},
		{
			"restore " + backups + " --data " + restored,
			"DIR/restored is backup NAME of TIME: 13 files of SIZE in TIME; of the jobs running then, 0 are queued again and 0 failed\n", "", 0,
		},
		{"restore " + backups, "", "molrun: it is not empty: it has ENTRY; give a new directory with --data\n", exitInvalid},
		{"health --listen 127.0.0.1:1", "", "molrun: the service does not respond: REASON\n", exitFailed},
		{"key shout", "", "molrun: unknown command \"shout\"; see molrun key --help\n", exitUsage},
		{"key creat", "", "molrun: unknown command \"creat\"; did you mean create?; see molrun key --help\n", exitUsage},
		{"sumbit cg-idp", "", "molrun: unknown command \"sumbit\"; did you mean submit?; see molrun --help\n", exitUsage},
		{"--data x sumbit", "", "molrun: unknown flag: --data; see molrun --help\n", exitUsage},
		{"jobs --stauts RUNNING", "", "molrun: unknown flag: --stauts; did you mean --status?; see molrun jobs --help\n", exitUsage},
		{"jobs -Z", "", "molrun: unknown shorthand flag: 'Z' in -Z; see molrun jobs --help\n", exitUsage},
		{"key disable", "", "molrun: molrun key disable requires the ID of a key; `molrun key list` shows IDs\n", exitUsage},
		{"key disable abcdefgh2345", "", "molrun: There is no key \"KEYID\"; `molrun key list` shows them.\n", exitMissing},
		{"key delete abcdefgh2345", "", "molrun: There is no key \"KEYID\"; `molrun key list` shows them.\n", exitMissing},
		{"storage report --by moon", "", "molrun: --by: use organization, user, algorithm, age\n", exitUsage},
	} {
		args := strings.Fields(tt.args)
		out, errs, code := d.run(args...)
		if args[0] == "health" {
			errs = regexp.MustCompile(`respond: .*`).ReplaceAllString(errs, "respond: REASON")
		}
		errs = regexp.MustCompile(`it has \S+;`).ReplaceAllString(errs, "it has ENTRY;")
		wantOutput(t, tt.args, out, tt.out)
		wantOutput(t, tt.args, errs, tt.errs)
		must.Equal(t, tt.args+": exit code", code, tt.code)
	}
	actions := d.actions()
	if want := []string{
		"service.drain", "service.resume", "secret.rotate", "prune", "prune", "repair", "compact", "backup", "backup", "key.disable", "key.delete",
	}; !slices.Equal(actions, want) {
		t.Errorf("the audit log has %q, want %q", actions, want)
	}
}

func TestAuditLogIsPrintedAsATable(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	for _, args := range [][]string{{"key", "create", "--organization", "lab", "--email", "ann@lab.example"}, {"resume"}, {"compact"}} {
		if _, errs, code := d.run(args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, errs)
		}
	}
	const head, compact = "TIME KEY ORGANIZATION ACTION RESULT REMOTE OBJECT\n", "TIME - - compact ok command\n"
	tomorrow := time.Now().AddDate(0, 0, 1).Format(time.DateOnly)
	for args, want := range map[string]string{
		"--action compact": head + compact, "--since " + tomorrow: "", "--action compact --since 1h": head + compact, "--key abcdefgh2345": "",
	} {
		out, errs, code := d.run(append([]string{"audit"}, strings.Fields(args)...)...)
		wantOutput(t, "audit "+args, out, want)
		if errs != "" || code != 0 {
			t.Errorf("audit %s: exit code %d: %s", args, code, errs)
		}
	}
	if out, _, _ := d.run("audit"); strings.Count(out, "\n") != 4 || strings.Count(out, "TIME") != 1 {
		t.Errorf("audit says %s", out)
	}
	if _, errs, code := d.run("audit", "--since", "soon"); code != exitUsage || !strings.Contains(errs, "--since: use an age") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// actions returns the actions in the audit log.
func (d *directory) actions() (actions []string) {
	d.t.Helper()
	out, errs, code := d.run("audit", "--json")
	if code != 0 {
		d.t.Fatalf("audit: exit code %d: %s", code, errs)
	}
	for line := range strings.Lines(out) {
		var e struct{ Action string }
		must.OK(d.t, json.Unmarshal([]byte(line), &e))
		actions = append(actions, e.Action)
	}
	return actions
}

func TestKeysAreLimitedAndTheListFitsATerminal(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	create := func(flags ...string) (errs string, code int) {
		_, errs, code = d.run(append([]string{"key", "create", "--organization", "lab", "--email", "ann@lab.example"}, flags...)...)
		return errs, code
	}
	for _, flags := range [][]string{
		{"--role", "viewer", "--expires", "90d", "--name", "dashboard"},
		{"--scope", "read,submit", "--from", "10.0.0.0/8", "--name", "CI"},
		{"--role", "admin"},
	} {
		if errs, code := create(flags...); code != 0 {
			t.Fatalf("%v: exit code %d: %s", flags, code, errs)
		}
	}
	list, _, _ := d.run("key", "list")
	for _, want := range []string{"  viewer  ", "  to 20", "  dashboard\n", "  CI; may only read, submit; from 10.0.0.0/8\n"} {
		must.Contain(t, "key list", list, want)
	}
	for line := range strings.Lines(list) {
		if !strings.Contains(line, "; from ") && len(strings.TrimRight(line, " \n")) > 80 {
			t.Errorf("wider than a terminal: %s", line)
		}
	}
	errs, code := create("--role", "king", "--scope", "read,all", "--from", "lab", "--name", "a/b")
	for _, want := range []string{"role: use viewer", "scopes[1]: use read", "networks[0]: write an address", "name: "} {
		if code != exitInvalid || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, want %q in %s", code, want, errs)
		}
	}
}

func TestKeysWithoutAService(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	create := func(flags ...string) client.NewKey {
		t.Helper()
		var k client.NewKey
		out, errs, code := d.run(append([]string{"key", "create", "--organization", "lab", "--email", "ann@lab.example", "--json"}, flags...)...)
		if err := json.Unmarshal([]byte(out), &k); err != nil || code != 0 || k.Secret == "" {
			t.Fatalf("key create %q: exit code %d, %v: %s%s", flags, code, err, out, errs)
		}
		return k
	}
	first, second := create(), create("--role", "admin", "--expires", "90d")
	if first.Role != "member" || !first.ExpiresAt.IsZero() || second.Role != "admin" {
		t.Errorf("keys %+v and %+v", first, second)
	}
	if days := time.Until(second.ExpiresAt).Hours() / 24; days < 89 || days > 91 {
		t.Errorf("the second key expires in %.1f days", days)
	}
	says := func(want string, args ...string) {
		t.Helper()
		if _, errs, code := d.run(args...); code != 0 || errs != want {
			t.Errorf("%q: exit code %d, %q, want %q", args, code, errs, want)
		}
	}
	says("key "+first.ID+" of ann@lab.example is disabled\n", "key", "disable", first.ID)
	says("key "+first.ID+" of ann@lab.example is active\n", "key", "enable", first.ID)
	says("key "+first.ID+" of ann@lab.example is disabled\nlinks made with it no longer work\n", "key", "disable", first.ID, "--revoke-links")
	says("key "+second.ID+" expires in 48h0m0s\n", "key", "rotate", second.ID, "--overlap", "2d")
	out, _, code := d.run("key", "list")
	if code != 0 || strings.Count(out, "\n") != 4 || !regexp.MustCompile(first.ID+` +lab +ann@lab.example +member +disabled +never *\n`).MatchString(out) {
		t.Errorf("key list: exit code %d: %s", code, out)
	}
	var keys []client.Key
	asJSON, _, _ := d.run("key", "list", "--json")
	must.OK(t, json.Unmarshal([]byte(asJSON), &keys))
	for _, k := range []client.NewKey{first, second} {
		if secret := strings.Split(k.Secret, "_")[2]; strings.Contains(out+asJSON, secret) {
			t.Errorf("key list shows the secret of %s", k.ID)
		}
	}
	if len(keys) != 3 {
		t.Errorf("keys %+v", keys)
	}
	says("key "+first.ID+" is deleted\n", "key", "delete", first.ID)
	third := create("--role", "admin")
	out, errs, code := d.run("key", "rotate", third.ID, "--json")
	var k client.NewKey
	if err := json.Unmarshal([]byte(out), &k); err != nil || k.Role != "admin" || code != 0 || errs != "key "+third.ID+" expires in 24h0m0s\n" {
		t.Errorf("key rotate: exit code %d, %v: %s%s", code, err, out, errs)
	}
	if out, _, code := d.run("key", "create", "--organization", "lab", "--email", "bob@lab.example"); code != 0 || !regexp.MustCompile(`^molrun_\S+\n$`).MatchString(out) {
		t.Errorf("key create: exit code %d, %q", code, out)
	}
	for _, tt := range []struct{ args, says string }{
		{"key create --organization lab --email a@b.example --expires soon", "--expires"},
		{"key create --organization lab --email a@b.example --expires 999ms", "at least one second"},
		{"key create --organization lab", "email"},
		{"key create --email a@b.example", "organization"},
		{"key rotate " + second.ID + " --overlap never", "is not a time"},
		{"key rotate " + second.ID + " --overlap -1s", "is not a time"},
	} {
		if out, errs, code := d.run(strings.Fields(tt.args)...); code != exitUsage || !strings.Contains(errs, tt.says) || out != "" {
			t.Errorf("%s: exit code %d, %q, want %q", tt.args, code, errs, tt.says)
		}
	}
	must.Equal(t, "an expired key", keyState(client.Key{ExpiresAt: time.Now().Add(-time.Second)}), "expired")
	must.Equal(t, "a key that is going to expire", keyState(client.Key{ExpiresAt: time.Now().Add(time.Minute)}), "active")
}
