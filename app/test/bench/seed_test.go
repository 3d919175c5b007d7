package main

import (
	"path/filepath"
	"testing"

	"molrun/app/test/must"
	"molrun/storage"
)

func TestSeededDatabaseIsSoundAndHasRareJobsForEachFilter(t *testing.T) {
	data := t.TempDir()
	const jobs = 2*minSeedGroup + 500 // more than one transaction
	must.OK(t, seed(t.Context(), data, jobs, nil))
	r, err := storage.OpenReadOnly(filepath.Join(data, "jobs.db"))
	must.OK(t, err)
	defer r.Close()
	report, err := r.Check(t.Context())
	if err != nil || report.Count > 0 {
		t.Errorf("check: %v, %+v", err, report)
	}
	users, algorithms, all := map[string]int{}, map[string]int{}, 0
	for j, err := range r.Jobs(t.Context()) {
		must.OK(t, err)
		all++
		users[j.Email]++
		algorithms[j.Type]++
		if n := len(j.Settings); n < seedSettings-10 || n > seedSettings+10 {
			t.Fatalf("job %s has settings of %d bytes, want about %d", j.Name, n, seedSettings)
		}
	}
	if all != jobs || users[rareUser] != rareHits || algorithms[rareAlgorithm] != rareHits {
		t.Errorf("%d jobs, %d of the rare user, %d of the rare algorithm; want %d, %d, %[5]d",
			all, users[rareUser], algorithms[rareAlgorithm], jobs, rareHits)
	}
	if users[absentUser]+algorithms[absentAlgorithm] > 0 {
		t.Error("found jobs of the absent user or algorithm")
	}
	if users[seedUser(0)] < 5*users[seedUser(30)] {
		t.Errorf("jobs by user: %v; want most of the jobs with a few users", users)
	}
}
