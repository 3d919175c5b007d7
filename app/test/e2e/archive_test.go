package e2e

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"molrun/app/test/must"
)

// times returns when the files of an archive were changed.
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

// TestArchivesHaveTheTimesOfTheirFiles also checks that an archive stays the same, byte for
// byte, and that those of results which an older version has made do, too.
func TestArchivesHaveTheTimesOfTheirFiles(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	began := time.Now().Add(-2 * time.Second)
	input := u.upload("in.txt", "text")
	u.submit("j", "shell", script("date > out/now; echo > out/old; touch -d 2001-02-03T04:05:06Z out/old; echo > out/odd; touch -d 1970-01-02 out/odd", `,"input":"`+input+`"`))
	if j := u.finished("j"); j.Status != "COMPLETED" {
		t.Fatalf("%+v", j)
	}
	const request = `{"jobName":"j","inputs":true}`
	archive := u.do("GET", u.linkTo(request).DownloadURL, nil).want(200).body
	never := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, changed := range times(t, archive) {
		switch recent := changed.After(began) && changed.Before(time.Now().Add(2*time.Second)); {
		case name == "old" && !changed.Equal(time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)),
			name == "odd" && !changed.Equal(never),
			name != "old" && name != "odd" && !recent:
			t.Errorf("%s was changed at %v", name, changed)
		}
	}
	same := func(what string) {
		t.Helper()
		link := u.linkTo(request).DownloadURL
		if again := u.do("GET", link, nil).want(200).body; !bytes.Equal(again, archive) {
			t.Errorf("%s, the archive differs", what)
		}
		middle := len(archive) / 2
		if part := u.do("GET", link, nil, "Range", fmt.Sprintf("bytes=%d-", middle)).want(206).body; !bytes.Equal(part, archive[middle:]) {
			t.Errorf("%s, its second half differs", what)
		}
	}
	same("again")
	s.stop()
	s.start()
	same("after a restart")

	s.stop() // as if it were of an older version, whose archives had no times
	manifests, err := filepath.Glob(filepath.Join(s.data(), "jobs", "*", "manifest.json"))
	must.OK(t, err)
	text, err := os.ReadFile(manifests[0])
	must.OK(t, err)
	before := regexp.MustCompile(`,"changed":\d+`).ReplaceAll(text, nil)
	if len(manifests) != 1 || len(before) == len(text) {
		t.Fatalf("%d manifests: %s", len(manifests), text)
	}
	must.OK(t, os.WriteFile(manifests[0], before, 0o600))
	s.start()
	for name, changed := range times(t, u.do("GET", u.linkTo(request).DownloadURL, nil).want(200).body) {
		if !changed.Equal(never) {
			t.Errorf("of an older version, %s was changed at %v", name, changed)
		}
	}
}
