package e2e

import (
	"archive/zip"
	"bytes"
	"testing"
	"time"

	"molrun/app/test/must"
)

// times returns the modification times of the files in an archive.
func times(t *testing.T, archive []byte) map[string]time.Time {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	must.OK(t, err)
	found := map[string]time.Time{}
	for _, f := range r.File {
		found[f.Name] = f.Modified
	}
	return found
}

func TestArchivesHaveTheTimesOfTheirFiles(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	began := time.Now().Add(-2 * time.Second)
	input := u.upload("in.txt", "text")
	u.submit("j", "shell", script("date > out/now; echo > out/old; touch -d 2001-02-03T04:05:06Z out/old; echo > out/odd; touch -d 1970-01-02 out/odd", `,"input":"`+input+`"`))
	u.completed("j")
	archive := u.do("GET", u.linkTo(`{"jobName":"j","inputs":true}`).DownloadURL, nil).want(200).body
	never := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, changed := range times(t, archive) {
		switch recent := changed.After(began) && changed.Before(time.Now().Add(2*time.Second)); {
		case name == "old" && !changed.Equal(time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)),
			name == "odd" && !changed.Equal(never),
			name != "old" && name != "odd" && !recent:
			t.Errorf("%s was changed at %v", name, changed)
		}
	}
}
