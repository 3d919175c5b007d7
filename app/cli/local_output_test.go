package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/server"
	"molrun/app/server/backup"
	"molrun/app/server/check"
	"molrun/app/server/config"
	"molrun/app/test/must"
	"molrun/storage/kv"
)

func TestPruneRequest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f := pruneFlags{olderThan: "1d", largerThan: "1KiB", failed: true, organization: "lab", user: "Ann@lab.example", by: "echo", yes: true}
	got, err := f.request(now)
	want := client.PruneRequest{EndedBefore: now.Add(-24 * time.Hour), Failed: true, Organization: "lab", User: "ann@lab.example", Algorithm: "echo", LargerThan: 1024}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for answer, want := range map[string]bool{"y\n": true, " YES \n": true, "n\n": false, "\n": false, "": false, "yeah\n": false} {
		var out bytes.Buffer
		if got := confirmed(strings.NewReader(answer), &out, "Sure? "); got != want || out.String() != "Sure? " {
			t.Errorf("%q confirms: %t, want %t; asked %q", answer, got, want, out.String())
		}
	}
}

func TestPruneRequiresConfirmation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		say  string
	}{
		{[]string{}, "older-than"},
		{[]string{"--older-than", "30d"}, "--yes"},
		{[]string{"--older-than", "soon", "--dry-run"}, "soon"},
		{[]string{"--older-than", "-1h", "--dry-run"}, "--older-than"},
		{[]string{"--older-than", "30d", "--dry-run", "--yes"}, "not both"},
		{[]string{"--older-than", "30d", "--json"}, "--json"},
		{[]string{"--older-than", "30d", "--dry-run", "--larger-than", "big"}, "big"},
	} {
		if out, errs, code := within(t, "", append([]string{"prune"}, tt.args...)...); code != exitUsage || !strings.Contains(errs, tt.say) || out != "" {
			t.Errorf("prune %v: exit code %d, %q %q, want a usage error with %q", tt.args, code, out, errs, tt.say)
		}
	}
}

func TestPruneAsksFirst(t *testing.T) {
	t.Parallel()
	for answer, left := range map[string]int{"y\n": 0, "n\n": 1} {
		d := newDirectory(t)
		f := pruneFlags{failed: true}
		root := newRoot()
		var out, errs bytes.Buffer
		c, _, err := root.Find([]string{"prune"})
		must.OK(t, err)
		c.SetContext(t.Context())
		root.SetIn(strings.NewReader(answer))
		root.SetOut(&out)
		root.SetErr(&errs)
		cfg := config.Default()
		cfg.Data, cfg.Database.FileSystem = d.Data, "any"
		must.OK(t, controlOf(t, cfg, func(control *client.Control) error {
			return f.deleteFound(t.Context(), c, control, client.PruneRequest{EndedBefore: time.Now(), Failed: true})
		}))
		must.OK(t, controlOf(t, cfg, func(control *client.Control) error {
			found, err := pruneAll(t.Context(), control, client.PruneRequest{EndedBefore: time.Now(), Failed: true, DryRun: true})
			must.Equal(t, fmt.Sprintf("after %q", answer), len(found), left)
			return err
		}))
		deleted := strings.Contains(out.String(), "\ndeleted: 1 jobs, 3 bytes\n")
		if deleted != (left == 0) || !strings.Contains(out.String(), "would be deleted: 1 jobs, 3 bytes\n") ||
			strings.Contains(errs.String(), "nothing was deleted") == deleted || !strings.Contains(errs.String(), "[y/N]") {
			t.Errorf("after %q: %s%s", answer, out.String(), errs.String())
		}
	}
}

func TestReportSaysWhatFillsTheDisk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		free, reserve, files, freeFiles, reserveFiles int64
		says                                          string
	}{
		{100, 100, 0, 0, 0, "100 bytes must stay free\n"},
		{99, 100, 0, 0, 0, "100 bytes must stay free; until more is free, no uploads are accepted and no jobs start\n"},
		{100, 100, 0, 0, 9, "100 bytes must stay free\n"},
		{100, 100, 1000, 9, 9, "100 bytes must stay free\n"},
		{100, 100, 1000, 8, 9, "100 bytes must stay free; only 8 more files (inodes) can be created: until it is 9, no uploads are accepted and no jobs start\n"},
	} {
		var r client.StorageReport
		r.Disk.Size, r.Disk.Free, r.Disk.Reserve = 500, tt.free, tt.reserve
		r.Disk.Files, r.Disk.FreeFiles, r.Disk.ReserveFiles = tt.files, tt.freeFiles, tt.reserveFiles
		r.Rows = []client.StorageRow{{Organization: "lab", Jobs: 1, ResultBytes: 30, UploadBytes: 20, QuotaBytes: 200}, {Organization: "free"}}
		var out strings.Builder
		must.OK(t, printReport(&out, &r))
		if !strings.HasSuffix(out.String(), tt.says) {
			t.Errorf("got\n%swant an end of\n%s", out.String(), tt.says)
		}
		wantOutput(t, "the table", strings.Split(out.String(), "\n\n")[0]+"\n",
			"ORGANIZATION JOBS QUEUED RESULTS UPLOADS THEIR SIZE IN ALL OF QUOTA\nlab 1 0 30 bytes 0 20 bytes 50 bytes 25 % of 200 bytes\nfree 0 0 0 bytes 0 0 bytes 0 bytes\nall 1 0 30 bytes 0 20 bytes 50 bytes\n")
	}
}

func TestCheckSaysWhatToDo(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	must.OK(t, printCheck(&out, &check.Report{
		Count: 3, Problems: []kv.Problem{{Text: "lost"}, {Text: "bent", Derivable: true}}, SetAside: "aside", Repaired: 2, Young: 1,
		Strays:  []check.Stray{{Path: "a/b", Bytes: 6, Changed: time.Now().Add(-73 * time.Hour)}},
		Foreign: []check.Stray{{Path: "notes.txt", Bytes: 2048, Changed: time.Now().Add(-3*time.Hour - time.Second)}, {Path: "x", Changed: time.Now().Add(-90 * time.Second)}},
	}))
	const want = "problem: lost\nproblem: bent (--repair fixes this)\nand 1 more problems\n" +
		"stray file: a/b (6 bytes, changed 3 days ago)\n1 stray file, 6 bytes: they are in aside now; check them, then delete them\n" +
		"foreign file: notes.txt (2.0 KiB, changed 3 hours ago)\nforeign file: x (0 bytes, changed 1 minute ago)\n" +
		"2 foreign files, 2.0 KiB: molrun does not touch them, and backups do not include them; move them elsewhere\n" +
		"1 file younger than a day not listed: the running service may be about to record them\nrepaired 2 problems\n" +
		"0 jobs, 0 uploads, 0 keys, sizes of 0 files (0 bytes): 3 problems\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	for _, tt := range []struct {
		count, derivable int
		repaired         bool
		says             string
	}{
		{2, 0, false, "there are 2 problems; only a backup can recover lost data (molrun restore)"},
		{2, 2, true, "there are 2 problems; only a backup can recover lost data (molrun restore)"},
		{2, 2, false, "there are 2 problems; stop the service and run molrun check --repair"},
		{2, 1, false, "there are 2 problems; molrun check --repair fixes 1, the others need a backup (molrun restore)"},
	} {
		if err := checkError(&check.Report{Count: tt.count, Derivable: tt.derivable}, tt.repaired); err.Error() != tt.says {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestBackupSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		problems, damaged []string
		says              string
		code              int
	}{
		{nil, nil, "", 0},
		{nil, []string{"a"}, "complete, but 1 files", exitDamaged},
		{[]string{"b", "c"}, []string{"a"}, "has 2 problems", exitFailed},
	} {
		var out strings.Builder
		err := backupProblems(&out, &backup.Record{Problems: tt.problems, Damaged: tt.damaged})
		if exitCode(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: %v", tt, err)
		}
		if want := len(tt.problems) + len(tt.damaged); strings.Count(out.String(), "\n") != want {
			t.Errorf("%+v: printed %q", tt, out.String())
		}
	}
}

func TestSinceIsATimeAgoOrADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"": {}, "24h": now.Add(-24 * time.Hour), "7d": now.Add(-7 * 24 * time.Hour),
		"2026-11-19": time.Date(2026, 11, 19, 0, 0, 0, 0, time.Local), "2026-11-19T10:00:00Z": time.Date(2026, 11, 19, 10, 0, 0, 0, time.UTC),
	} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
	must.Fail(t, "soon", must.Error2(parseSince("soon", now)), "use an age")
}

func TestUnitFileNamesWhatItRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "molrun.toml")
	must.OK(t, os.WriteFile(file, []byte("[slurm]\nshared_dir = \"/shared/molrun\"\n[stop]\nrequests = \"1500ms\"\n[backup]\nto = \"/backups\"\n"), 0o600))
	out, errs, code := within(t, "", "systemd-unit", "--config", file, "--data", filepath.Join(dir, "data"), "--user", "runner")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, line := range []string{
		"User=runner", "RequiresMountsFor=" + dir + "/data", " serve --init --config " + file + " --data " + dir + "/data\n",
		"TimeoutStopSec=22\n", "ReadWritePaths=" + dir + "/data /tmp /var/tmp -/shared/molrun -/backups\n",
	} {
		must.Contain(t, "the text", out, line)
	}
	must.OK(t, os.WriteFile(file, []byte("[stop]\nrequests = \"1s\"\n"), 0o600))
	if out, _, _ := within(t, "", "systemd-unit", "--config", file, "--data", dir); !strings.Contains(out, "TimeoutStopSec=21\n") || !strings.Contains(out, "User=molrun\n") || !strings.Contains(out, "ReadWritePaths="+dir+" /tmp /var/tmp\n") {
		t.Errorf("without a cluster: %s", out)
	}
	if _, errs, code := within(t, "", "systemd-unit", "--config", file, "--data", "/srv/my data"); code != exitInvalid || !strings.Contains(errs, "can't be used in a unit file") {
		t.Errorf("a path with a space: exit code %d: %s", code, errs)
	}
}

func TestEngineIsRunByHand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good := write("good.json", `{"sequences":["GSGSGSGS"],"names":["short"],"steps":1000}`)
	bad := write("bad.json", `{"sequences":["GSGSGSGS"],"steps":1}`)
	fasta := write("a.fasta", ">a\nGSGSGSGS\n")
	if out, errs, code := within(t, "", "engine", "cg-idp", "--settings", good, "--out", filepath.Join(dir, "out")); code != 0 || !strings.Contains(out, "molrun:progress 1 done") {
		t.Errorf("a simulation: exit code %d: %s%s", code, out, errs)
	}
	if out, errs, code := within(t, "", "engine", "cg-idp", "--settings", bad, "--out", filepath.Join(dir, "bad")); code != exitInvalid || !strings.Contains(errs, "[steps]: ") || strings.Contains(errs, "molrun:") || out != "" {
		t.Errorf("bad settings: exit code %d: %s%s", code, out, errs)
	}
	for args, says := range map[string]string{
		"--settings " + good: "specify --settings FILE and --out DIR", "--out " + dir: "specify --settings FILE and --out DIR",
		"--settings /nowhere/x --out " + dir:                      "read settings: ",
		"--settings " + good + " --fasta /nowhere/y --out " + dir: "/nowhere/y",
	} {
		if _, errs, code := within(t, "", append([]string{"engine", "cg-idp"}, strings.Fields(args)...)...); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "metrics.json")); err != nil {
		t.Error(err)
	}
	if out, _, code := within(t, `{"fasta":"a.fasta","steps":1000}`+"\n", "engine", "cg-idp", "--validate", "--fasta", fasta); code != 0 || out != "[]\n" {
		t.Errorf("--validate: exit code %d: %q", code, out)
	}
}

// TestPDBFilesDifferAsTheLogSays converts an mmCIF file that can't be written in PDB
// format without changes.
func TestPDBFilesDifferAsTheLogSays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "a.cif"), filepath.Join(dir, "a.pdb")
	columns := "group_PDB label_atom_id type_symbol label_comp_id auth_asym_id auth_seq_id Cartn_x Cartn_y Cartn_z label_seq_id"
	must.Write(t, file, "data_a\nloop_\n_atom_site."+strings.ReplaceAll(columns, " ", "\n_atom_site.")+`
ATOM N N GLY heavy 1 0 0 0 1
ATOM CA C GLY heavy 1 1.4 0 0 1
ATOM C C GLY heavy 1 2.8 0 0 1
HETATM N N MSE heavy 2 4.1 0 0 2
HETATM CA C MSE heavy 2 5.5 0 0 2
HETATM SE SE MSE heavy 2 6.9 2 0 2
HETATM O O HOH heavy 10001 20 0 0 .
`)
	for options, want := range map[string]string{
		"--standard":  "The structure has 1 chain, 2 residues, 1 water, 1 modified residue (MSE).\nModified residues are written as standard ones: heavy:MSE2 as MET.\nWater numbering restarts at 0 after 9999.\nChain heavy was renamed A.\n",
		"--no-hetero": "The structure has 1 chain, 2 residues, 1 water, 1 modified residue (MSE).\nModified residues are written as standard ones: heavy:MSE2 as MET.\nChain heavy was renamed A.\n",
	} {
		if said, errs, code := within(t, "", "engine", "pdb", "--structure", file, options, "--out", out); code != 0 || said != want {
			t.Errorf("%s: exit code %d: %s%s", options, code, said, errs)
		}
		must.Contain(t, options, must.Read(t, out), "ATOM      6  SD  MET A   2       6.900   2.000   0.000")
	}
	if said, errs, code := within(t, "", "engine", "pdb", "--structure", file, "--out", out); code != 0 || strings.Contains(said, "MET") {
		t.Errorf("as it is: exit code %d: %s%s", code, said, errs)
	}
	must.Contain(t, "as it is", must.Read(t, out), "HETATM    6 SE   MSE A   2 ")
}

func controlOf(t *testing.T, c config.Config, fn func(*client.Control) error) error {
	t.Helper()
	return server.WithControl(t.Context(), c, func(_ context.Context, control *client.Control) error { return fn(control) })
}
