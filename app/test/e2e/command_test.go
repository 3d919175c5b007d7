package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app/server/host"
	"molrun/app/test/must"
	"molrun/app/test/whole"
	"molrun/storage"
)

// emptyDatabase creates a data directory with an empty database.
func emptyDatabase(t *testing.T, data string) {
	t.Helper()
	must.OK(t, os.Mkdir(data, 0o700))
	records, err := storage.Open(filepath.Join(data, host.Database), storage.Options{AnyFileSystem: true})
	must.OK(t, err)
	must.OK(t, records.Close())
}

// unstarted returns a server with this configuration that has not been started.
func unstarted(t *testing.T, config string, env ...string) *instance {
	t.Helper()
	s := &instance{t: t, dir: t.TempDir(), env: env, stderr: &whole.Log{}, secrets: &confidential{}}
	emptyDatabase(t, s.data())
	must.OK(t, os.WriteFile(filepath.Join(s.dir, "config.toml"), []byte(fmt.Sprintf("data = %q\n", s.data())+config), 0o600))
	return s
}

func TestUsersAreLimitedByCommands(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	u := s.user("lab", "ann@lab.example")
	says := func(want string, args ...string) {
		t.Helper()
		if out, errs, code := s.run(args...); code != 0 || !strings.Contains(out+errs, want) {
			t.Errorf("%v: exit code %d, want %q in %s%s", args, code, want, out, errs)
		}
	}
	says("ann@lab.example is active, with the role viewer", "user", "set", "ann@lab.example", "--organization", "lab", "--role", "viewer")
	u.do("PUT", "/upload/a.txt", nil).code(403, "FORBIDDEN")
	says("is disabled, with the role viewer", "user", "disable", "Ann@lab.example", "--organization", "lab")
	u.do("GET", "/jobs", nil).want(401)
	says("lab  ann@lab.example  viewer  disabled  1     0     ", "user", "list")
	says("is active", "user", "enable", "ann@lab.example", "--organization", "lab")
	says("is active, with the role member", "user", "set", "ann@lab.example", "--organization", "lab", "--role", "member")
	says("has the role member", "key", "set", strings.Split(u.key, "_")[1], "--scope", "read", "--name", "shown")
	u.do("PUT", "/upload/a.txt", nil).code(403, "FORBIDDEN")
	says("; may only read", "key", "list")
	says("is deleted", "user", "delete", "ann@lab.example", "--organization", "lab")
	u.do("GET", "/jobs", nil).want(401)
	s.fails(exitMissing, "", "user", "delete", "ann@lab.example", "--organization", "lab")
}

// A key creates a second key, which creates a third. Anyone who has had the first key
// might also have the others.
func TestDisablingAKeyCanCloseThoseThatItMade(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	ann, bob := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	makeKey := func(from user) user {
		var made struct{ Key string }
		from.do("POST", "/keys", `{}`).want(200).into(&made)
		from.key = made.Key
		return from
	}
	second := makeKey(ann)
	third, ofBob := makeKey(second), makeKey(bob)
	id := func(u user) string { return strings.Split(u.key, "_")[1] }
	works := func(u user, status int) { t.Helper(); u.do("GET", "/jobs", nil).want(status) }
	if out, _, _ := s.run("key", "list"); !strings.Contains(out, "made by "+id(second)) {
		t.Errorf("the list does not show who created a key:\n%s", out)
	}
	s.ok("key", "disable", id(ann))
	works(ann, 401)
	works(second, 200) // as documented, the second key still works
	s.ok("key", "disable", id(second))
	_, errs, code := s.run("key", "disable", id(ann), "--made-keys")
	if code != 0 || strings.Count(errs, "is disabled\n") != 3 || !strings.Contains(errs, "key "+id(third)+" of ann@lab.example is disabled") {
		t.Errorf("exit code %d:\n%s", code, errs)
	}
	for _, u := range []user{ann, second, third} {
		works(u, 401)
	}
	works(bob, 200)
	works(ofBob, 200)
	s.fails(exitMissing, "", "key", "disable", "absent", "--made-keys")
}

func TestDisablingAKeyCanRevokeItsLinks(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{algorithms: map[string]string{"shell.toml": shellFile}})
	ann, bob := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	annID := strings.Split(ann.key, "_")[1]
	ann.submit("j", "shell", script("echo text > out/a"))
	ann.finished("j")
	link := func(u user) string { return u.linkTo(`{"jobName":"j","fileName":"a"}`).DownloadURL }
	grant, annLink, bobLink := ann.grant("a.txt"), link(ann), link(bob)
	put := func(status int) answer {
		return ann.do("PUT", grant.UploadURL, strings.NewReader("text")).want(status)
	}
	s.ok("key", "disable", annID)
	put(200) // as documented, links outlive their key
	ann.do("GET", annLink, nil).want(200)
	if _, errs, code := s.run("key", "disable", annID, "--revoke-links"); code != 0 || !strings.Contains(errs, "no longer work") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	revoked := func() {
		t.Helper()
		put(403).code(403, "LINK_INVALID")
		for _, url := range []string{annLink, grant.DownloadURL} {
			ann.do("GET", url, nil).code(403, "LINK_INVALID")
		}
		ann.do("GET", bobLink, nil).want(200)
	}
	revoked()
	s.ok("key", "enable", annID)
	revoked()
	again := link(ann)
	ann.do("GET", again, nil).want(200)
	out, _, _ := s.run("audit", "--action", "key.revoke-links")
	must.Contain(t, "the audit log", out, annID)
	s.fails(exitMissing, "", "key", "disable", "absent", "--revoke-links")
}

func TestConcurrentCommandsWithoutAServerDoNotInterfere(t *testing.T) {
	t.Parallel()
	s := unstarted(t, "")
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			if _, errs, code := s.run("key", "create", "--organization", "lab", "--email", fmt.Sprintf("u%d@lab.example", i)); code != 0 {
				t.Errorf("exit code %d: %s", code, errs)
			}
		})
	}
	wg.Wait()
	if by, _, code := outside(t, "--version"); by != s.ok("version") || code != 0 || !strings.HasPrefix(by, "molrun ") {
		t.Errorf("--version prints %q, exit code %d", by, code)
	}
	if list, _, _ := s.run("key", "list"); strings.Count(list, "@lab.example") != 5 {
		t.Errorf("key list: %s", list)
	}
}

func TestPrecedenceOfFlagsVariablesFileAndDefaults(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{
		config: "public_url = \"http://file.example\"\n[links]\nupload = \"2h\"\n[limits]\nbody = \"4KiB\"\n",
		env:    []string{"MOLRUN_PUBLIC_URL=http://variable.example", "MOLRUN_LIMITS_BODY=2KiB", "MOLRUN_DATA=/nowhere"},
		flags:  []string{"--public-url", "http://flag.example", "--listen", "127.0.0.2:0"},
	}.withData())
	if !strings.HasPrefix(s.base, "http://127.0.0.2:") {
		t.Errorf("server listens on %s, though the flag says 127.0.0.2", s.base)
	}
	out := s.ok("key", "create", "--data", s.data(), "--organization", "lab", "--email", "ann@lab.example")
	u := user{s, strings.TrimSpace(out)}
	g := u.grant("a.txt")
	if !strings.HasPrefix(g.UploadURL, "http://flag.example/blobs/") {
		t.Errorf("uploadUrl %s, want the address of the flag", g.UploadURL)
	}
	if at, err := time.Parse(time.RFC3339Nano, g.ExpiresAt); err != nil || time.Until(at) > 2*time.Hour || time.Until(at) < time.Hour {
		t.Errorf("expiresAt %s, want the 2h of the file", g.ExpiresAt)
	}
	u.do("POST", "/submit-job", `{"jobName":"`+strings.Repeat("x", 3000)+`"}`).code(413, "BODY_TOO_LARGE") // above the 2KiB limit set by the variable
	u.do("POST", "/submit-batch", `{"batchName":"`+strings.Repeat("x", 3000)+`"}`).want(422)               // below the default limit of 64MiB
}

// withData returns the options with the data directory set by a flag.
func (o serverOptions) withData() serverOptions {
	o.flags = append(o.flags, "--data", "data") // relative to the server's directory
	return o
}

func TestExitCodesOfCommands(t *testing.T) {
	t.Parallel()
	s := unstarted(t, "")
	bad := filepath.Join(s.dir, "bad.toml")
	must.OK(t, os.WriteFile(bad, []byte("format = 1\ntype = \"a\"\ncomand = [\"true\"]\n"), 0o600))
	for _, tt := range []struct {
		code int
		args string
	}{
		{0, "version"},
		{0, "serve --help"},
		{0, "key list"},
		{0, "algorithms list"},
		{exitFailed, "health --listen 127.0.0.1:1"},
		{exitUsage, "no-such-command"},
		{exitKey, "algorithms no-such-command --json"}, // arguments are search terms
		{exitUsage, "serve no-such-command"},
		{0, "key"},
		{exitUsage, "key list --no-such-flag"},
		{exitUsage, "key create --organization lab --email a@b.example --expires 0d"},
		{exitUsage, "engine cg-idp"},
		{exitMissing, "key disable absent"},
		{exitMissing, "algorithms show absent"},
		{exitInvalid, "key create --organization lab --email nobody"},
		{exitInvalid, "algorithms check " + bad},
	} {
		out, errs, code := s.run(strings.Fields(tt.args)...)
		if code != tt.code || (code != 0) != strings.HasPrefix(errs+out, "molrun: ") && !strings.Contains(errs+out, "bad.toml") {
			t.Errorf("molrun %s: exit code %d, want %d: %s%s", tt.args, code, tt.code, out, errs)
		}
		if strings.Contains(errs, "molrun: \n") {
			t.Errorf("molrun %s: empty error message: %s", tt.args, errs)
		}
	}
	if list, _, _ := s.run("key", "list"); strings.Contains(list, "@") {
		t.Errorf("a refused key create created a key: %s", list)
	}
}
