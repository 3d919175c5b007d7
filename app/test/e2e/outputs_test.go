package e2e

import (
	"strings"
	"testing"
)

// dockFile is a program of which a wrong input must not become a result: it ends with
// status 0 whatever it did.
const dockFile = `format = 1
type = "dock"
version = "1"

[[parameters]]
name = "case"
type = "string"
required = true

[[steps]]
name = "prepare"
command = ["sh", "-c", '''
case $1 in
none) echo 0 molecules converted ;;
empty) : > receptor.pdbqt; echo 1 molecule converted ;;
gone) echo 1 molecule converted ;;
crash) echo "Parse error: no atoms in line 7"; echo; echo "See the manual for advice"; echo ---; exit 3 ;;
file) echo "ERROR: bond too long" > dock.log; exit 1 ;;
*) echo ATOM > receptor.pdbqt; echo 1 molecule converted ;;
esac''', "sh", "{settings.case}"]
stdout = "{work}/prepare.txt"
fails_if = '0 molecules converted'
makes = ["{work}/receptor.pdbqt"]

[[steps]]
name = "dock"
command = ["sh", "-c", '''
echo "pose;affinity" > scores.csv
while read -r line; do echo "$line" >> scores.csv; done
test "$1" = no_poses || echo MODEL > poses.pdbqt
pwd > ../notes.txt
exit 1''', "sh", "{settings.case}"]
folder = "{out}/run"
stdin = "1;-6.1\n2;-5.3\n"
ok = [1]
keep = ["{work}/receptor.*"]

[[outputs]]
name = "poses"
title = "Docked poses"
file = "run/poses.pdbqt"
kind = "structure"
required = true

[metrics]
affinity = { table = "run/scores.csv", column = "affinity", take = "min", unit = "kcal/mol", digits = 2, better = "lower", rank = true }
poses = { table = "run/scores.csv", take = "count" }

[[failures]]
pattern = 'bond too long'
message = "A bond of the ligand is too long; minimise it first."
file = "{work}/*.log"
`

func TestWrongInputNeverBecomesAResult(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	tests := []struct{ name, code, message string }{
		{"none", "NO_RESULT", `Step "prepare" has failed: it printed "0 molecules converted".`},
		{"empty", "NO_RESULT", `Step "prepare" ended, but receptor.pdbqt is empty.`},
		{"gone", "NO_RESULT", `Step "prepare" ended, but did not make receptor.pdbqt.`},
		{"crash", "EXIT_STATUS", `The program of step "prepare" ended with exit status 3. Last output: Parse error: no atoms in line 7`},
		{"file", "EXIT_STATUS", "A bond of the ligand is too long; minimise it first."},
		{"no_poses", "NO_RESULT", "The program ended, but left no Docked poses (run/poses.pdbqt)."},
	}
	for _, tt := range tests {
		u.submit(tt.name, "dock", `{"case":"`+tt.name+`"}`)
	}
	u.submit("good", "dock", `{"case":"good"}`)
	for _, tt := range tests {
		r := u.finished(tt.name)
		if r.Failure == nil || r.Failure.Code != tt.code || !strings.HasPrefix(r.Failure.Message, tt.message) {
			t.Errorf("%s: %+v, want %s: %s", tt.name, r.Failure, tt.code, tt.message)
		}
	}
	r := u.finished("good")
	if got := string(u.members("good")["metrics"]); r.Status != "COMPLETED" || !strings.Contains(got, `"results":{"affinity":-6.1,"poses":2}`) {
		t.Errorf("%s with metrics %s", r.Status, got)
	}
	files := unzip(t, u.result("good", ""))
	if files["receptor.pdbqt"] != "ATOM\n" || !strings.HasSuffix(files["notes.txt"], "/work/out/run\n") {
		t.Errorf("the result has %q", files)
	}
}
