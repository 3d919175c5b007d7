package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/base/unit"
	"molrun/app/server/config"
	"molrun/app/test/must"
)

// standIn is a script in place of this program: it records its arguments and simulates
// the results of a backup or test restore. A file FAIL makes it fail.
const standIn = `#!/bin/sh
echo "$*" >> "$DIR/calls"
[ -e "$DIR/FAIL" ] && { echo one; echo "no space left" >&2; exit 1; }
now=$(cat "$DIR/now")
case $1 in
backup)
	mkdir -p "$2/20261123T000000Z"
	echo "{\"format\":1,\"name\":\"b\",\"takenAt\":\"$now\",\"bytes\":7}" | tee "$2/20261123T000000Z/backup.json" ;;
restore) echo "{\"backup\":\"b\",\"at\":\"$now\",\"problems\":[]}" | tee "$2/trial.json" ;;
esac
`

// scheduled is a schedule with a clock.
type scheduled struct {
	*Schedule
	t   *testing.T
	dir string
	now time.Time
}

func newScheduled(t *testing.T) *scheduled {
	t.Helper()
	s := &scheduled{t: t, dir: t.TempDir(), now: time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)}
	c := config.Default()
	c.Data, c.Backup.To = "/srv/molrun", filepath.Join(s.dir, "backups")
	c.Backup.Every, c.Backup.Try = unit.Duration(24*time.Hour), unit.Duration(72*time.Hour)
	s.put("stand-in", standIn)
	must.OK(t, os.Chmod(filepath.Join(s.dir, "stand-in"), 0o700))
	must.OK(t, os.Mkdir(c.Backup.To, 0o700))
	t.Setenv("DIR", s.dir)
	s.Schedule = &Schedule{Config: c, Program: filepath.Join(s.dir, "stand-in"), Log: zerolog.Nop(), Now: func() time.Time { return s.now }}
	return s
}

func (s *scheduled) put(name, text string) {
	must.OK(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

// after advances the clock and returns the commands that ran as a result.
func (s *scheduled) after(d time.Duration) string {
	s.t.Helper()
	s.now = s.now.Add(d)
	s.put("now", s.now.Format(time.RFC3339))
	s.put("calls", "")
	s.once(s.t.Context())
	calls := must.Read(s.t, filepath.Join(s.dir, "calls"))
	return strings.NewReplacer(s.Config.Backup.To, "TO", "\n", ";").Replace(calls)
}

const (
	takeCommand  = "backup TO --marked --keep 7d,4w,6m --json --data /srv/molrun;"
	trialCommand = "restore TO --try --json --data /srv/molrun;"
)

func TestBackupsAndTrialsComeWhenTheyAreDue(t *testing.T) {
	s := newScheduled(t)
	for range 3 {
		if calls := s.after(time.Minute); calls != "" || s.State().Failures != 1 || s.State().Available {
			t.Errorf("a directory that is not mounted: %q, %+v", calls, s.State())
		}
	}
	s.put("backups/molrun-backups.json", `{"format":1}`)
	for _, step := range []struct {
		after time.Duration
		calls string
	}{
		{time.Minute, takeCommand + trialCommand},
		{time.Minute, ""},
		{24*time.Hour - time.Minute, takeCommand},
		{24 * time.Hour, takeCommand},
		{24 * time.Hour, takeCommand + trialCommand},
		{-48 * time.Hour, takeCommand + trialCommand}, // the clock was set back
		{time.Hour, ""},
	} {
		must.Equal(t, fmt.Sprintf("at %s", s.now), s.after(step.after), step.calls)
	}
	want := ScheduleState{Available: true, Every: 24 * time.Hour, Taken: s.now.Add(-time.Hour), Bytes: 7, Failures: 1, Tested: s.now.Add(-time.Hour), TestedOK: true}
	if got := s.State(); got != want {
		t.Errorf("state %+v, want %+v", got, want)
	}
}

func TestABackupThatFailsIsTriedAgainInAnHour(t *testing.T) {
	s := newScheduled(t)
	var log strings.Builder
	s.Log = zerolog.New(&log)
	s.put("backups/molrun-backups.json", `{"format":1}`)
	s.put("FAIL", "")
	must.Equal(t, "calls", s.after(0), takeCommand)
	var line struct{ Error, Message string }
	if err := json.Unmarshal([]byte(log.String()), &line); err != nil || !strings.Contains(line.Error, "no space left") || !strings.Contains(line.Message, "failed") {
		t.Errorf("log %s, %v", log.String(), err)
	}
	must.Equal(t, "calls", s.after(59*time.Minute), "")
	must.OK(t, os.Remove(filepath.Join(s.dir, "FAIL")))
	if calls := s.after(time.Minute); calls != takeCommand+trialCommand || s.State().Failures != 1 {
		t.Errorf("calls %q, %+v", calls, s.State())
	}
}

func TestTheServiceEndsABackupThatIsBeingTaken(t *testing.T) {
	s := newScheduled(t)
	s.put("backups/molrun-backups.json", `{"format":1}`)
	s.put("stand-in", "#!/bin/sh\necho \"$*\" > \"$DIR/calls\"\nexec sleep 60\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	must.Become(t, "a backup begins", func() bool {
		_, err := os.Stat(filepath.Join(s.dir, "calls"))
		return err == nil
	})
	cancel(errors.New("a stop"))
	must.OK(t, <-done)
	if s.State().Failures != 0 {
		t.Error("a stop counts as a failure")
	}
}
