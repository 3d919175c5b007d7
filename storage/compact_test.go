package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

// grown returns the path of a closed database with free pages.
func grown(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	s := openAt(t, path, Options{})
	big := strings.Repeat("x", 4<<20)
	for n := range 6 {
		update(t, s, func(tx app.Tx) error {
			return tx.PutUpload(&app.Upload{ID: app.UploadID(jobIDText(100 + n)), ContentType: big})
		})
	}
	for n := range 6 {
		update(t, s, func(tx app.Tx) error { return tx.DeleteUpload(app.UploadID(jobIDText(100 + n))) })
	}
	putSample(t, s)
	must.OK(t, s.Close())
	return path
}

func TestCompactFreesSpaceAndKeepsEverything(t *testing.T) {
	path := grown(t)
	before := readAll(t, path)
	sizes, err := Compact(t.Context(), path, Options{})
	must.OK(t, err)
	info, err := os.Stat(path)
	if err != nil || sizes.Before < 24<<20 || sizes.After != info.Size() || sizes.After > 1<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("sizes %+v, the file has %d bytes, mode %v; %v", sizes, info.Size(), info.Mode(), err)
	}
	must.Equal(t, "records", compare(readAll(t, path), before), unharmed)
	checkStore(t, openAt(t, path, Options{Warn: func(text string) { t.Errorf("the next start warns: %s", text) }}))
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 3 {
		t.Errorf("files are left behind: %v, %v", entries, err)
	}
}
