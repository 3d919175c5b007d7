package e2e

import (
	"encoding/json"
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
	if _, errs, code := s.run("audit", "--data", "/nowhere"); code != exitMissing {
		t.Errorf("without a data directory: exit code %d: %s", code, errs)
	}
}
