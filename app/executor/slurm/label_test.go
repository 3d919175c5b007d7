package slurm

import (
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

func TestNamesAndCommentsOfJobs(t *testing.T) {
	ann := app.Owner{Organization: "lab", Email: "ann@lab.example"}
	row := ann
	row.Batch = "fam"
	tests := []struct {
		name    string
		owner   app.Owner
		jobs    []string
		worker  bool
		title   string
		comment string
	}{
		{"one job", ann, []string{"fold-7"}, false, "molrun-fold-7:TOKEN", "user=ann@lab.example organization=lab job=fold-7"},
		{"a row alone", row, []string{"fam-2"}, false, "molrun-fam-2:TOKEN", "user=ann@lab.example organization=lab batch=fam"},
		{"rows", row, []string{"fam-1", "fam-2"}, false, "molrun-fam:TOKEN", "user=ann@lab.example organization=lab batch=fam"},
		{"short rows", row, []string{"fam-1"}, true, "molrun-fam:TOKEN", "user=ann@lab.example organization=lab batch=fam"},
		{"jobs of one user", ann, []string{"a", "b"}, false, "molrun-TOKEN", "user=ann@lab.example organization=lab"},
		{"unknown", app.Owner{}, []string{""}, false, "molrun-TOKEN", ""},
		{
			"hostile names",
			app.Owner{Organization: `"; rm -rf $HOME #`, Email: "--array=1-9\n|\x00'`"},
			[]string{"array-:,%j \\ 💥"},
			false,
			"molrun-array-___j____:TOKEN", "user=--array=1-9_____ organization=__ rm -rf _HOME _ job=array-___j____",
		},
		{"a long name", ann, []string{strings.Repeat("x", 200)}, false, "molrun-" + strings.Repeat("x", 64) + ":TOKEN", "user=ann@lab.example organization=lab job=" + strings.Repeat("x", 64)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var tasks []app.Task
			for _, name := range tt.jobs {
				owner := tt.owner
				owner.Job = name
				tasks = append(tasks, app.Task{Token: "TOKEN", Owner: owner})
			}
			r := request{owner: tt.owner, worker: tt.worker}
			l := &lists{dir: t.TempDir(), prefix: "molrun"}
			_, err := l.writeList("molrun-TOKEN", r.label(tasks), tasks)
			must.OK(t, err)
			title := l.title("molrun-TOKEN")
			if got := r.comment(l.label("molrun-TOKEN")); title != tt.title || got != tt.comment {
				t.Errorf("title %q, comment %q", title, got)
			}
			if got := unlabelled(title, "molrun"); got != "molrun-TOKEN" || !isOurs(title, "molrun") {
				t.Errorf("the title is read as %q", got)
			}
		})
	}
}
