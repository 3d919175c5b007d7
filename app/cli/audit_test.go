package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/audit"
	"molrun/app/config"
	"molrun/app/unit"
)

// audited runs `molrun audit --json` and gives its entries as "action object
// result".
func (s *server) audited(flags ...string) (lines []string, entries []audit.Entry) {
	s.t.Helper()
	out, errs, code := s.run(append([]string{"audit", "--json"}, flags...)...)
	if code != 0 {
		s.t.Fatalf("audit ended with %d: %s", code, errs)
	}
	decoder := json.NewDecoder(strings.NewReader(out))
	for decoder.More() {
		var e audit.Entry
		must(s.t, decoder.Decode(&e))
		entries = append(entries, e)
		lines = append(lines, strings.Join([]string{e.Action, e.Object, e.Result}, " "))
	}
	return lines, entries
}

func TestAuditLogTellsWhoChangedWhat(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	u, v := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	ann, bob := strings.Split(u.key, "_")[1], strings.Split(v.key, "_")[1]
	g := u.grant("a.txt")
	u.do("DELETE", "/files/"+g.FileID, nil).want(204)
	v.do("POST", "/jobs/none/cancel", nil).want(404)
	v.do("GET", "/jobs", nil).want(200)
	user{s, "wrong"}.do("GET", "/jobs", nil).want(401)
	if _, errs, code := s.run("key", "disable", bob); code != 0 {
		t.Fatal(errs)
	}
	all := []string{
		"key.create " + ann + " ok", "key.create " + bob + " ok", "upload.create a.txt ok", "file.delete " + g.FileID + " ok",
		"job.cancel none NOT_FOUND", "authenticate  UNAUTHORIZED", "key.disable " + bob + " ok",
	}
	for _, state := range []string{"while the service runs", "while it does not"} {
		got, entries := s.audited()
		same(t, "entries "+state, got, all)
		if e := entries[2]; e.Key != ann || e.Organization != "lab" || e.Remote != "127.0.0.1" || e.Request == "" || time.Since(e.Time.Time) > patience {
			t.Errorf("%+v", e)
		}
		if state == "while the service runs" {
			s.stop()
		}
	}
	for _, tt := range []struct {
		flags []string
		want  []string
	}{
		{[]string{"--key", bob}, []string{all[1], all[4], all[6]}},
		{[]string{"--action", "key"}, []string{all[0], all[1], all[6]}},
		{[]string{"--action", "key.disable"}, all[6:]},
		{[]string{"--since", "1h"}, all},
		{[]string{"--since", time.Now().AddDate(0, 0, 2).Format(time.DateOnly)}, nil},
	} {
		got, _ := s.audited(tt.flags...)
		same(t, fmt.Sprint(tt.flags), got, tt.want)
	}
	out, _, _ := s.run("audit")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 8 || !strings.HasPrefix(lines[0], "TIME") || !strings.Contains(lines[3], "upload.create") {
		t.Errorf("the table is\n%s", out)
	}
	if info, err := os.Stat(filepath.Join(s.data(), "audit.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("audit.log: %v, %v", info.Mode(), err)
	}
	if _, errs, code := s.run("audit", "--since", "yesterday"); code != exitUsage {
		t.Errorf("--since yesterday ended with %d: %s", code, errs)
	}
	if _, errs, code := s.run("audit", "--data", "/nowhere"); code != exitMissing {
		t.Errorf("without a data directory it ended with %d: %s", code, errs)
	}
}

func TestCommandsOnTheWholeDirectoryAreAudited(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	backups, elsewhere := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "elsewhere")
	first := s.backup(backups)
	s.prune("--older-than", "30d", "--dry-run") // does nothing
	s.prune("--older-than", "30d", "--yes", "--organization", "lab")
	s.ok("secret", "rotate")
	s.stop()
	s.ok("compact")
	s.ok("check") // only reads
	s.ok("check", "--repair")
	s.ok("key", "create", "--organization", "lab", "--email", "ann@lab.example")
	second := s.backup(backups)
	s.ok("restore", backups, "--data", elsewhere)
	got, entries := s.audited()
	for i, e := range entries {
		if e.Action == "secret.rotate" || e.Action == "key.create" {
			got[i] = e.Action // of a random object
		}
		if e.Remote != byCommand && e.Remote != "control socket" {
			t.Errorf("%+v comes from elsewhere", e)
		}
	}
	before := []string{"backup " + first.Name + " ok", "prune lab ok", "secret.rotate", "compact  ok", "repair  ok", "key.create"}
	same(t, "entries", got, append(before, "backup "+second.Name+" ok"))
	restored, _ := s.audited("--data", elsewhere, "--action", "restore")
	same(t, "entries of the restored directory", restored, []string{"restore " + second.Name + " ok"})
}

// testAudit opens an audit log of small files.
func testAudit(t *testing.T, keep int) (*auditLog, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	a, err := openAudit(t.TempDir(), config.Audit{MaxSize: 500, Keep: keep}, zerolog.New(&log))
	must(t, err)
	t.Cleanup(func() { must(t, a.close()) })
	return a, &log
}

func entry(i int) audit.Entry {
	return audit.Entry{Time: unit.At(time.Unix(int64(i), 0)), Action: "job.submit", Object: fmt.Sprint(i), Result: "ok"}
}

// objects reads the whole log.
func objects(t *testing.T, path string) (all []string) {
	t.Helper()
	r := &auditReader{path: path, print: func(e audit.Entry) error { all = append(all, e.Object); return nil }}
	defer r.close()
	must(t, r.run(t.Context(), false))
	return all
}

func TestAuditLogKeepsTheNewestFiles(t *testing.T) {
	a, _ := testAudit(t, 3)
	for i := range 100 {
		a.add(entry(i))
	}
	files, err := filepath.Glob(a.path + "*")
	must(t, err)
	if len(files) != 4 {
		t.Errorf("files %v, want the current one and 3 older", files)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Size() > 500 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	got := objects(t, a.path)
	for i, object := range got {
		if want := fmt.Sprint(100 - len(got) + i); object != want {
			t.Fatalf("entries %v: not the newest in order", got)
		}
	}
	if len(got) < 20 {
		t.Errorf("only %d entries are left", len(got))
	}
}

func TestAuditLogGoesOnWhenTheDiskHasRoomAgain(t *testing.T) {
	a, log := testAudit(t, 3)
	a.add(entry(1))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must(t, err)
	disk := a.file
	a.file = full // every write ends with ENOSPC
	a.add(entry(2))
	a.add(entry(3))
	a.file = disk
	must(t, full.Close())
	a.add(entry(4))
	a.add(entry(5))
	same(t, "entries", objects(t, a.path), []string{"1", "2", "4", "5"}) // the second tells that 2 are lost
	text, err := os.ReadFile(a.path)
	must(t, err)
	if !strings.Contains(string(text), `"action":"audit.lost","object":"2"`) {
		t.Errorf("the log does not tell what is missing: %s", text)
	}
	if strings.Count(log.String(), "no space left") != 2 {
		t.Errorf("the service's log: %s", log)
	}
}

func TestAuditLogDropsTheLineThatACrashCutOff(t *testing.T) {
	a, _ := testAudit(t, 3)
	a.add(entry(1))
	must(t, os.WriteFile(a.path+".x", nil, 0o600)) // no file of the log
	file, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = io.WriteString(file, `{"time":"2026-`)
	must(t, errors.Join(err, file.Close()))
	again, err := openAudit(filepath.Dir(a.path), config.Audit{MaxSize: 500, Keep: 3}, zerolog.Nop())
	must(t, err)
	again.add(entry(2))
	must(t, again.close())
	same(t, "entries", objects(t, a.path), []string{"1", "2"})
	if text, _ := os.ReadFile(a.path); strings.Count(string(text), "\n") != 2 {
		t.Errorf("the file holds %q", text)
	}
}

func TestAuditLogIsOneLineAnEntryWhateverIsInIt(t *testing.T) {
	a, _ := testAudit(t, 3)
	e := entry(1)
	e.Object = "a\n{\"action\":\"forged\"}\x1b[2J\u2028\x00\xff"
	a.add(e)
	text, err := os.ReadFile(a.path)
	must(t, err)
	if strings.Count(string(text), "\n") != 1 {
		t.Errorf("more than one line: %q", text)
	}
	for _, r := range strings.TrimSpace(string(text)) {
		if r < ' ' || r == '\u2028' {
			t.Errorf("a control character is not escaped: %q", text)
		}
	}
}

func TestFollowedAuditLogGoesOnInTheNextFile(t *testing.T) {
	a, _ := testAudit(t, 50)
	a.add(entry(0))
	seen := make(chan string)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	r := &auditReader{path: a.path, print: func(e audit.Entry) error { seen <- e.Object; return nil }}
	go func() { ended <- r.run(ctx, true) }()
	next := func(want int) {
		t.Helper()
		select {
		case got := <-seen:
			if got != fmt.Sprint(want) {
				t.Fatalf("entry %s, want %d", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("entry %d is never shown", want)
		}
	}
	next(0)
	for i := 1; i < 30; i++ { // several files
		a.add(entry(i))
		next(i)
	}
	stop()
	must(t, <-ended)
	r.close()
}
