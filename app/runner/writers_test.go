package runner

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/job/quota"
	"molrun/app/task"
	"molrun/app/test/must"
)

// TestRunningJobsAreToldWhatOthersHaveLeft runs two jobs of ann, who has a quota, and one
// of bob.
func TestRunningJobsAreToldWhatOthersHaveLeft(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.options.Quota = func(_, user string) quota.Quota {
			if user == ann.Email {
				return quota.Quota{Bytes: 100 << 20}
			}
			return quota.Quota{}
		}
		w.Service = w.service(simFile)
		w.jobs = w.Service.Runs
		w.play(func(string, int) script { return script{runs: time.Hour, cause: app.CauseDone} })
		dirs := map[string]string{}
		for name, by := range map[string]app.Caller{"a": ann, "b": ann, "c": bob} {
			dirs[name] = w.path(w.submit(by, name, `{}`), "1")
		}
		w.start()
		for name, written := range map[string]int{"a": 60 << 20, "b": 30 << 20, "c": 90 << 20} {
			w.until(name, app.Running)
			must.Write(t, filepath.Join(dirs[name], task.WrittenFile), fmt.Sprintf(`{"protocol":1,"bytes":%d}`, written))
		}
		spec, err := task.ReadSpec(dirs["a"])
		must.OK(t, err)
		must.Equal(t, "bytes that a job may write at first", spec.StorageBytes, 100<<20)
		time.Sleep(2 * shareEvery)
		synctest.Wait()
		for name, share := range map[string]int{"a": 70 << 20, "b": 40 << 20} {
			must.Equal(t, "what "+name+" is told", w.text(filepath.Join(dirs[name], task.ShareFile)), fmt.Sprintf("{\n  \"protocol\": 1,\n  \"bytes\": %d\n}\n", share))
		}
		if task.Exists(dirs["c"], task.ShareFile) {
			t.Error("a job without a quota has a limit")
		}
	})
}
