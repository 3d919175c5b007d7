package storage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// warnings gives options that note what the store has to say.
func warnings() (Options, *[]string) {
	var said []string
	return Options{Warn: func(text string) { said = append(said, text) }}, &said
}

// afterTwoCommits gives a closed store and its bytes after the first of two
// commits, and the number of each.
func afterTwoCommits(t *testing.T) (path string, first []byte, commits [2]int64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "jobs.db")
	for i := range commits {
		s := openAt(t, path, Options{})
		putJobs(t, s, testJob(i))
		closeStore(t, s)
		c, err := ReadCommits(path)
		if err != nil {
			t.Fatal(err)
		}
		commits[i] = c.Commit
		if i == 0 {
			if first, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	return path, first, commits
}

func TestStartTellsOfLostCommits(t *testing.T) {
	path, first, commits := afterTwoCommits(t)
	if commits[0] >= commits[1] {
		t.Fatalf("commits %v do not rise", commits)
	}
	o, said := warnings()
	closeStore(t, openAt(t, path, o))
	if len(*said) > 0 {
		t.Errorf("a sound database: %q", *said)
	}
	if err := os.WriteFile(path, first, 0o600); err != nil { // as if the disk had forgotten
		t.Fatal(err)
	}
	r, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := r.Info(); err != nil || !strings.Contains(info.Lost, "is lost") || r.Close() != nil {
		t.Errorf("a reader is told %q, %v", info.Lost, err)
	}
	closeStore(t, openAt(t, path, o))
	if len(*said) != 1 || !strings.Contains((*said)[0], "what was confirmed in between is lost") {
		t.Errorf("after the loss of a commit: %q", *said)
	}
}

func TestDamagedMetaPageOfTheNewestCommitIsToldAtTheStart(t *testing.T) {
	path, _, commits := afterTwoCommits(t)
	newest := commits[1] % 2 // bbolt alternates between its two meta pages
	if err := overwrite(path, newest*4096+40, []byte{0xAA}); err != nil {
		t.Fatal(err)
	}
	o, said := warnings()
	openAt(t, path, o)
	if len(*said) != 1 || !strings.Contains((*said)[0], "lost") {
		t.Errorf("bbolt fell back to the commit before, and the start says %q", *said)
	}
}

func TestUnreadableCounterIsNoObstacle(t *testing.T) {
	path, _, commits := afterTwoCommits(t)
	for _, text := range []string{"", "{", `{"commit":"x"}`} {
		if err := os.WriteFile(path+counterSuffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o, said := warnings()
		closeStore(t, openAt(t, path, o))
		if c, err := ReadCommits(path); err != nil || c.Commit < commits[1] || len(*said) > 0 {
			t.Errorf("counter %q: afterwards %+v, %v; said %q", text, c, err, *said)
		}
	}
}

// TestCounterFollowsWithinASecond holds without any wait: time is the bubble's.
func TestCounterFollowsWithinASecond(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := openAt(t, filepath.Join(dir, "jobs.db"), Options{})
		for n := range 3 {
			putJobs(t, s, testJob(n))
			want := int64(commits(t, s))
			time.Sleep(counterEvery + time.Millisecond)
			synctest.Wait()
			if c, err := ReadCommits(s.db.Path()); err != nil || c.Commit != want {
				t.Errorf("a second after commit %d the file says %+v, %v", want, c, err)
			}
		}
	})
}
