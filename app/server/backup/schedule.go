package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/base/fault"
	"molrun/app/server/config"
)

const (
	lookEvery        = time.Minute      // how often to check whether a backup is due
	retryFailedAfter = time.Hour        // how long to wait after a failure
	endWithin        = 10 * time.Second // time from SIGTERM to SIGKILL when the service stops
	lowestPriority   = 19               // niceness of the processes
)

// Schedule takes backups of a running service at the configured interval, and
// periodically tests restoring one. Each runs as a separate process, so that it can
// neither block the service nor use its memory.
type Schedule struct {
	Config  config.Config
	Program string // path of this program
	Log     zerolog.Logger
	Now     func() time.Time

	mu     sync.Mutex
	state  ScheduleState
	failed time.Time // time of the last run if it failed, otherwise zero
	absent string    // last reported reason why the directory is unavailable
}

// ScheduleState is the state of the backups.
type ScheduleState struct {
	Available bool          // false if, for example, the disk is not mounted
	Every     time.Duration // backup interval
	Taken     time.Time     // time of the newest backup; zero if there is none
	Bytes     int64         // size of the newest backup
	Took      time.Duration // duration of the last backup by this process
	Failures  int           // failed backups and test restores since startup
	Tested    time.Time     // time of the last test restore; zero if there was none
	TestedOK  bool
}

// State returns the current state.
func (s *Schedule) State() ScheduleState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	state.Every = time.Duration(s.Config.Backup.Every)
	return state
}

func (s *Schedule) dir() Dir { return Dir(s.Config.Backup.To) }

// Run takes backups until ctx is done. If no directory is configured, it only waits.
func (s *Schedule) Run(ctx context.Context) error {
	if s.Config.Backup.To == "" {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		s.once(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// once runs whatever is due.
func (s *Schedule) once(ctx context.Context) {
	if err := s.readDir(); err != nil {
		if s.absent != err.Error() {
			s.absent = err.Error()
			s.fail(err, "the backup directory is unavailable")
		}
		return
	}
	s.absent = ""
	if !s.failed.IsZero() && within(s.Now().Sub(s.failed), retryFailedAfter) {
		return
	}
	err := s.due(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		s.failed = time.Time{}
	default:
		s.failed = s.Now()
		s.fail(err, "backup failed; retrying in 1h")
	}
}

func (s *Schedule) fail(err error, what string) {
	s.mu.Lock()
	s.state.Failures++
	s.mu.Unlock()
	s.Log.Error().Err(err).Str("to", s.Config.Backup.To).Msg(what)
}

// within reports whether the elapsed time is below a limit. A clock that was set back
// makes the elapsed time negative, which counts as exceeding the limit.
func within(passed, limit time.Duration) bool { return passed >= 0 && passed < limit }

func (s *Schedule) due(ctx context.Context) error {
	state := s.State()
	if !within(s.Now().Sub(state.Taken), time.Duration(s.Config.Backup.Every)) {
		if err := s.takeBackup(ctx); err != nil {
			return err
		}
	}
	if every := time.Duration(s.Config.Backup.Try); every > 0 && !within(s.Now().Sub(state.Tested), every) {
		return s.testNewest(ctx)
	}
	return nil
}

// readDir reads the state of the directory. An unmounted disk leaves an empty mount
// point, which must not be filled.
func (s *Schedule) readDir() error {
	marked, err := s.dir().Marked()
	s.mu.Lock()
	s.state.Available = marked && err == nil
	s.mu.Unlock()
	if err == nil && !marked {
		err = fault.Errorf(fault.Invalid, "%s has no backups; mount its disk, or run molrun backup %[1]s once", s.dir())
	}
	if err != nil {
		return err
	}
	newest, err := s.dir().Newest()
	if err != nil {
		return err
	}
	tried, err := s.dir().LastTest()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Taken, s.state.Bytes = time.Time{}, 0
	if newest != nil {
		s.state.Taken, s.state.Bytes = newest.TakenAt, newest.Bytes
	}
	s.state.Tested, s.state.TestedOK = time.Time{}, false
	if tried != nil {
		s.state.Tested, s.state.TestedOK = tried.At, len(tried.Problems) == 0
	}
	return nil
}

// takeBackup takes a backup.
func (s *Schedule) takeBackup(ctx context.Context) error {
	began := s.Now()
	var taken Record
	if err := s.runProgram(ctx, &taken, "backup", string(s.dir()), "--marked", "--keep", s.Config.Backup.Keep.String(), "--json"); err != nil {
		return errors.Join(err, s.readDir())
	}
	took := s.Now().Sub(began)
	s.mu.Lock()
	s.state.Took = took
	s.mu.Unlock()
	s.Log.Info().Str("backup", taken.Name).Str("to", s.Config.Backup.To).Int("files", taken.Files).
		Int64("bytes", taken.Bytes).Int64("copied", taken.Copied).Dur("took", took).Msg("took a backup")
	return s.readDir()
}

// testNewest tests restoring the newest backup.
func (s *Schedule) testNewest(ctx context.Context) error {
	var tried TestedRestore
	if err := s.runProgram(ctx, &tried, "restore", string(s.dir()), "--try", "--json"); err != nil {
		return errors.Join(fmt.Errorf("test restore: %w", err), s.readDir())
	}
	s.Log.Info().Str("backup", tried.Backup).Int("files", tried.Files).Int64("bytes", tried.Bytes).Msg("the newest backup can be restored")
	return s.readDir()
}

// runProgram runs this program with the service's settings at the lowest priority, and
// decodes its output. When ctx is done, it sends SIGTERM; the next run can use the work
// done so far.
func (s *Schedule) runProgram(ctx context.Context, said any, args ...string) error {
	if s.Config.File != "" {
		args = append(args, "--config", s.Config.File)
	}
	c := exec.CommandContext(ctx, s.Program, append(args, "--data", s.Config.Data)...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = endWithin
	c.Env = os.Environ()
	var out, complaints bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaints
	if err := c.Start(); err != nil {
		return err
	}
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, c.Process.Pid, lowestPriority) // if this fails, the process only uses more CPU time
	if err := c.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %s", err, lastLines(complaints.String()))
	}
	return json.Unmarshal(out.Bytes(), said)
}

// mostLines is the maximum number of lines of a process's error output to log.
const mostLines = 5

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-mostLines):], "; ")
}
