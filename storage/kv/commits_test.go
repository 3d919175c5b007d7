package kv

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app/test/must"
	"molrun/storage/kv/boltfile"
)

// warnings returns options that collect warnings.
func warnings() (Options, *[]string) {
	var said []string
	return Options{Warn: func(text string) { said = append(said, text) }}, &said
}

// afterTwoCommits returns a closed database, its bytes after the first of two
// commits, and the numbers of both.
func afterTwoCommits(t *testing.T) (path string, first []byte, commits [2]int64) {
	t.Helper()
	path = newPath(t)
	for i := range commits {
		db := openAt(t, path, Options{})
		put(t, db, i)
		must.OK(t, db.Close())
		c, err := boltfile.ReadCommits(path)
		must.OK(t, err)
		commits[i] = c.Commit
		if i == 0 {
			first, err = os.ReadFile(path)
			must.OK(t, err)
		}
	}
	if commits[0] >= commits[1] {
		t.Fatalf("commits %v do not rise", commits)
	}
	return path, first, commits
}

func TestStartWarnsOfLostCommits(t *testing.T) {
	path, first, _ := afterTwoCommits(t)
	o, said := warnings()
	must.OK(t, openAt(t, path, o).Close())
	if len(*said) > 0 {
		t.Errorf("of a sound database: %q", *said)
	}
	must.OK(t, os.WriteFile(path, first, 0o600)) // as if the disk had lost the second commit
	r, err := OpenReadOnly(path, schemaWith())
	must.OK(t, err)
	if info, err := r.Info(); err != nil || !strings.Contains(info.Lost, "are lost") || r.Close() != nil {
		t.Errorf("a reader gets %q, %v", info.Lost, err)
	}
	must.OK(t, openAt(t, path, o).Close())
	if len(*said) != 1 || !strings.Contains((*said)[0], "changes confirmed in between are lost") {
		t.Errorf("after the loss of a commit: %q", *said)
	}
}

func TestStartWarnsOfADamagedMetaPage(t *testing.T) {
	path, _, commits := afterTwoCommits(t)
	newest := commits[1] % 2 // bbolt alternates between its two meta pages
	must.OK(t, overwrite(path, newest*4096+40, []byte{0xAA}))
	o, said := warnings()
	openAt(t, path, o)
	if len(*said) != 1 || !strings.Contains((*said)[0], "lost") {
		t.Errorf("bbolt fell back to the commit before, and the start says %q", *said)
	}
}

func TestUnreadableCommitsFileIsReplaced(t *testing.T) {
	path, _, commits := afterTwoCommits(t)
	for _, text := range []string{"", "{", `{"commit":"x"}`} {
		must.OK(t, os.WriteFile(path+".commits", []byte(text), 0o600))
		o, said := warnings()
		must.OK(t, openAt(t, path, o).Close())
		if c, err := boltfile.ReadCommits(path); err != nil || c.Commit < commits[1] || len(*said) > 0 {
			t.Errorf("file %q: afterwards %+v, %v; warnings %q", text, c, err, *said)
		}
	}
}

func TestCommitsFileIsAtMostASecondBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openAt(t, newPath(t), Options{})
		for n := range 3 {
			put(t, db, n)
			want := int64(commits(t, db))
			time.Sleep(time.Second + time.Millisecond)
			synctest.Wait()
			if c, err := boltfile.ReadCommits(db.Path()); err != nil || c.Commit != want {
				t.Errorf("a second after commit %d the file says %+v, %v", want, c, err)
			}
		}
	})
}
