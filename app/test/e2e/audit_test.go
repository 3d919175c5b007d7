package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/job/audit"
	"molrun/app/test/must"
)

// runAudit runs `molrun audit --json` and returns its entries, also as lines of
// "action object result".
func (s *instance) runAudit(flags ...string) (lines []string, entries []audit.Entry) {
	s.t.Helper()
	out, errs, code := s.run(append([]string{"audit", "--json"}, flags...)...)
	if code != 0 {
		s.t.Fatalf("audit: exit code %d: %s", code, errs)
	}
	decoder := json.NewDecoder(strings.NewReader(out))
	for decoder.More() {
		var e audit.Entry
		must.OK(s.t, decoder.Decode(&e))
		entries = append(entries, e)
		lines = append(lines, strings.Join([]string{e.Action, e.Object, e.Result}, " "))
	}
	return lines, entries
}

func TestAuditLogRecordsWhoChangedWhat(t *testing.T) {
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
	for _, state := range []string{"service running", "service stopped"} {
		got, entries := s.runAudit()
		same(t, "entries "+state, got, all)
		if e := entries[2]; e.Key != ann || e.Organization != "lab" || e.Remote != "127.0.0.1" || e.Request == "" || time.Since(e.Time.Time) > patience {
			t.Errorf("%+v", e)
		}
		if state == "service running" {
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
		got, _ := s.runAudit(tt.flags...)
		same(t, fmt.Sprint(tt.flags), got, tt.want)
	}
	out, _, _ := s.run("audit")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 8 || !strings.HasPrefix(lines[0], "TIME") || !strings.Contains(lines[3], "upload.create") {
		t.Errorf("unexpected table:\n%s", out)
	}
	if info, err := os.Stat(filepath.Join(s.data(), "audit.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("audit.log: %v, %v", info.Mode(), err)
	}
	if _, errs, code := s.run("audit", "--since", "yesterday"); code != exitUsage {
		t.Errorf("--since yesterday: exit code %d: %s", code, errs)
	}
	if _, errs, code := s.run("audit", "--data", "/nowhere"); code != exitMissing {
		t.Errorf("without a data directory: exit code %d: %s", code, errs)
	}
}

func TestMaintenanceCommandsAreAudited(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	backups, elsewhere := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "elsewhere")
	first := s.backup(backups)
	s.prune("--older-than", "30d", "--dry-run") // changes nothing
	s.prune("--older-than", "30d", "--yes", "--organization", "lab")
	s.ok("secret", "rotate")
	s.stop()
	s.ok("compact")
	s.ok("check") // reads only
	s.ok("check", "--repair")
	s.ok("key", "create", "--organization", "lab", "--email", "ann@lab.example")
	second := s.backup(backups)
	s.ok("restore", backups, "--data", elsewhere)
	got, entries := s.runAudit()
	for i, e := range entries {
		if e.Action == "secret.rotate" || e.Action == "key.create" {
			got[i] = e.Action // the object is random
		}
		if e.Remote != "command" && e.Remote != "control socket" {
			t.Errorf("unexpected origin: %+v", e)
		}
	}
	before := []string{"backup " + first.Name + " ok", "prune lab ok", "secret.rotate", "compact  ok", "repair  ok", "key.create"}
	same(t, "entries", got, append(before, "backup "+second.Name+" ok"))
	restored, _ := s.runAudit("--data", elsewhere, "--action", "restore")
	same(t, "entries of the restored directory", restored, []string{"restore " + second.Name + " ok"})
}
