package runner

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/test/must"
)

// TestOutputOfALostAttemptIsFetchedOnceThereIsSpace puts the job's directory on a disk
// too small for the attempt's output.
func TestOutputOfALostAttemptIsFetchedOnceThereIsSpace(t *testing.T) {
	remoteBubble(t, func(t *testing.T, w *world) {
		text := strings.Repeat("checkpoint\n", 10<<10)
		w.play(func(_ string, attempt int) script {
			if attempt == 1 {
				return script{runs: time.Minute, out: map[string]string{"checkpoint": text}}
			}
			return script{runs: time.Minute, cause: app.CauseDone, out: map[string]string{}}
		})
		id := w.submit(ann, "a", `{}`)
		small := w.files.JobDir(id)
		must.OK(t, os.MkdirAll(small, 0o700))
		if err := syscall.Mount("none", small, "tmpfs", 0, "size=64k,mode=700"); err != nil {
			t.Skipf("a small disk needs root: %v", err)
		}
		t.Cleanup(func() { must.OK(t, syscall.Unmount(small, syscall.MNT_DETACH)) })
		stop := w.start()
		w.until("a", app.Running)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if isDir(filepath.Join(small, "1")) {
			t.Fatal("the output fits, so nothing is tested")
		}
		must.OK(t, syscall.Mount("none", small, "tmpfs", syscall.MS_REMOUNT, "size=10m,mode=700"))
		if r := w.finished("a"); r.Status != app.Completed || r.Attempts != 2 {
			t.Fatalf("record %+v, failure %+v", r.Job, r.Failure)
		}
		if got := w.checkResult(id)["checkpoint"]; got != text {
			t.Errorf("the second attempt found %d bytes of the checkpoint, want %d", len(got), len(text))
		}
		stop()
	})
}
