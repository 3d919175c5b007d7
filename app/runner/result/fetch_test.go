package result

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/test/must"
)

// A copy that was not made durable is valid only during the boot in which it was made.
// After a reboot the copy and the files collected from it are discarded and made again,
// as long as the source exists.
func TestCopyOfAnEarlierBootIsMadeAgain(t *testing.T) {
	shared, job := t.TempDir(), t.TempDir()
	must.Write(t, filepath.Join(shared, task.LogFile), "log")
	must.Write(t, filepath.Join(shared, task.WorkDir, task.OutDir, "file"), "whole")
	home := filepath.Join(job, "1")
	fetch := func(boot string) {
		t.Helper()
		r := Remote{Dir: shared, Home: home, MaxFiles: 10, Log: zerolog.Nop(), Boot: boot}
		must.OK(t, r.Fetch(&app.Outcome{OutputFiles: 1, OutputBytes: 5}, goOn))
	}
	// collected simulates the result that a crash can leave: the file names without
	// content.
	collected := func() string {
		t.Helper()
		must.OK(t, os.Rename(filepath.Join(home, task.WorkDir, task.OutDir), filepath.Join(job, resultDir)))
		file := filepath.Join(job, resultDir, "file")
		must.OK(t, os.Truncate(file, 0))
		must.OK(t, os.WriteFile(filepath.Join(job, manifestFile), nil, 0o600))
		return file
	}
	fetch("this boot")
	file := collected()
	fetch("this boot")
	if _, err := os.Stat(file); err != nil {
		t.Errorf("during the same boot the result is forgotten: %v", err)
	}
	fetch("the next boot")
	for _, name := range []string{resultDir, manifestFile} {
		if _, err := os.Stat(filepath.Join(job, name)); err == nil {
			t.Errorf("%s of the earlier boot is left", name)
		}
	}
	if text, err := os.ReadFile(filepath.Join(home, task.WorkDir, task.OutDir, "file")); string(text) != "whole" {
		t.Errorf("the copy has %q, %v", text, err)
	}
	collected()
	must.OK(t, os.RemoveAll(shared))
	fetch("a third boot")
	if !IsDir(home) || !IsDir(filepath.Join(job, resultDir)) {
		t.Error("files that can't be copied again were removed")
	}
}
