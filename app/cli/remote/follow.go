package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/plaintext"
	"molrun/app/cli/terminal"
	"molrun/app/client"
)

// JobFailedError reports that an awaited job failed.
type JobFailedError struct {
	Name    string
	Message string
}

// Error implements error.
func (e *JobFailedError) Error() string {
	return fmt.Sprintf("%s failed: %s", terminal.Clean(e.Name), terminal.CleanLines(e.Message))
}

// WaitTimeoutError reports that a job did not finish within --timeout.
type WaitTimeoutError struct{ Name string }

// Error implements error.
func (e *WaitTimeoutError) Error() string {
	return fmt.Sprintf("timed out; %s is still running. Resume: molrun wait %[1]s", terminal.Clean(e.Name))
}

// StillRunningError reports that the user stopped waiting for a job that keeps running.
type StillRunningError struct{ Name string }

// Error implements error.
func (e *StillRunningError) Error() string {
	return fmt.Sprintf("%s is still running. Resume: molrun wait %[1]s. Stop: molrun cancel %[1]s", terminal.Clean(e.Name))
}

// waiting limits how long a command waits.
type waiting struct{ Timeout time.Duration }

// AddFlag adds the --timeout flag.
func (w *waiting) AddFlag(c *cobra.Command) {
	c.Flags().DurationVar(&w.Timeout, "timeout", 0, "stop waiting after this time, with exit code 7; the job keeps running (default: no limit)")
}

// within returns ctx with the timeout.
func (w waiting) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.Timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, w.Timeout)
}

// waitError converts the error that ends a wait to WaitTimeoutError or StillRunningError,
// if one of them applies.
func waitError(ctx, waited context.Context, name string, err error) error {
	switch {
	case err == nil || waited.Err() == nil:
		return err
	case ctx.Err() == nil:
		return &WaitTimeoutError{name}
	}
	return &StillRunningError{name}
}

// failureOf returns a finished job's failure as an error, or nil if it did not fail.
func failureOf(j *client.Job) error {
	switch {
	case j.Status != "FAILED":
		return nil
	case j.Failure != nil:
		return &JobFailedError{j.Name, j.Failure.Message}
	}
	return &JobFailedError{j.Name, cmp.Or(j.StatusReason, "it has no result")}
}

// Await waits for a job to finish and shows its progress. It continues across broken
// connections and restarts of the service.
func (s *session) Await(ctx context.Context, name string, w waiting) (*client.Job, error) {
	waited, cancel := w.within(ctx)
	defer cancel()
	bars := s.NewBars()
	defer bars.Close()
	line := bars.Job(name)
	defer line.End()
	err := s.Follow(waited, name, false, func(e client.Event) error { return s.advance(line, e) })
	if err != nil {
		return nil, waitError(ctx, waited, name, err)
	}
	j, err := s.API.Job(ctx, name)
	return j, waitError(ctx, waited, name, err)
}

// advance updates the progress line of a job from an event.
func (s *session) advance(line *terminal.Line, e client.Event) error {
	if e.Name != "job" && e.Name != "progress" {
		return nil
	}
	j, err := client.Decode[client.Job](e.Data)
	if err != nil {
		return err
	}
	if e.Name == "progress" {
		j.Status = "RUNNING"
	}
	fraction, head, detail := progressOf(j)
	line.At(fraction, head, detail)
	return nil
}

// progressOf returns how far a job has progressed, as a fraction and in words.
func progressOf(j *client.Job) (fraction float64, head, detail string) {
	head = terminal.State(j.Status)
	var more []string
	if n := rowCount(j); n > 0 {
		ended := j.Counts["COMPLETED"] + j.Counts["FAILED"]
		fraction = float64(ended) / float64(n)
		head = fmt.Sprintf("%d of %d jobs have finished", ended, n)
		if failed := j.Counts["FAILED"]; failed > 0 {
			more = append(more, fmt.Sprintf("%d failed", failed))
		}
	}
	if j.Progress != nil {
		fraction = j.Progress.Fraction
		more = append(more, j.Progress.Text)
	}
	if j.Queue != nil && j.Queue.Position > 0 {
		more = append(more, fmt.Sprintf("position %d of %d", j.Queue.Position, j.Queue.Of))
	}
	if j.Status == "QUEUED" && j.StatusReason != "" {
		more = append(more, j.StatusReason)
	}
	if len(j.Warnings) > 0 {
		more = append(more, "warning: "+j.Warnings[0])
	}
	if j.ETASeconds != nil {
		more = append(more, "about "+terminal.Seconds(float64(*j.ETASeconds))+" left")
	}
	return fraction, head, strings.Join(more, ", ")
}

// rowCount returns the number of jobs in a batch, or 0 for a single job.
func rowCount(j *client.Job) (n int) {
	for _, count := range j.Counts {
		n += count
	}
	return n
}

// errJobEnded marks the end of a complete stream.
var errJobEnded = errors.New("the job has finished")

// Follow passes the events of a job to print until the job has finished. It reconnects
// when necessary.
func (s *session) Follow(ctx context.Context, name string, logs bool, print func(client.Event) error) error {
	last, printed := "", time.Time{}
	for stuck := 0; ; {
		err := s.listen(ctx, name, logs, &last, func(e client.Event) error {
			stuck = 0
			return print(e)
		})
		switch {
		case errors.Is(err, errJobEnded):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !isTemporary(err):
			return err
		}
		if stuck++; stuck > 1 && time.Since(printed) > time.Minute {
			s.Notef("the service does not respond (%v); retrying", err)
			printed = time.Now()
		}
		wait := min(time.Duration(stuck)*500*time.Millisecond, 15*time.Second)
		if asked, busy := retryDelay(err); busy {
			wait = asked
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// listen passes the events of one connection to print, and sets last to the ID of the
// last event. It returns errJobEnded when there are no more events.
func (s *session) listen(ctx context.Context, name string, logs bool, last *string, print func(client.Event) error) error {
	for e, err := range s.API.JobEvents(ctx, name, logs, *last) {
		if err != nil {
			return err
		}
		if e.ID != "" {
			*last = e.ID
		}
		switch e.Name {
		case "end":
			return errJobEnded
		case "deleted":
			return &client.Error{Status: 404, Code: "NOT_FOUND", Message: "the job was deleted"}
		}
		if err := print(e); err != nil {
			return err
		}
	}
	return errors.New("the stream ended")
}

// isTemporary reports whether a retry might succeed, because the service is unavailable
// or limits the rate of requests.
func isTemporary(err error) bool {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.Status >= 500 || refused.Status == 429 || refused.Code == ""
	}
	var local *net.DNSError
	return !errors.As(err, &local) || local.IsTemporary
}

// FollowLog copies the job's log to out until the job has finished.
func (s *session) FollowLog(ctx context.Context, name string, w waiting, out io.Writer) error {
	waited, cancel := w.within(ctx)
	defer cancel()
	status, last := "", ""
	err := s.Follow(waited, name, true, func(e client.Event) error {
		switch e.Name {
		case "log":
			lines, err := client.Decode[client.LogLines](e.Data)
			if err != nil {
				return err
			}
			return s.PrintLog(out, lines.Text)
		case "job":
			j, err := client.Decode[client.Job](e.Data)
			if err != nil || j.Status == status {
				return err
			}
			status = j.Status
			_, head, detail := progressOf(j)
			last = fmt.Sprintf("%s: %s", terminal.Clean(name), strings.TrimSuffix(terminal.Clean(head+", "+detail), ", "))
			if !j.Finished() { // more of the log follows
				s.Notef("%s", last)
			}
			return nil
		}
		return nil
	})
	if err == nil {
		s.Notef("%s", last)
	}
	return waitError(ctx, waited, name, err)
}

// PrintLog prints part of a log. On a terminal, it removes control sequences, but a line
// that the program overwrites with a carriage return is still overwritten.
func (s *session) PrintLog(out io.Writer, text string) error {
	if s.Interactive {
		again := strings.Contains(strings.TrimRight(strings.SplitN(text, "\n", 2)[0], "\r"), "\r")
		text = terminal.CleanLines(plaintext.OnTerminal(text))
		if again {
			text = "\r\x1b[K" + text
		}
	}
	_, err := fmt.Fprint(out, text)
	return err
}

// CopyLog prints a log. On a terminal, it removes control sequences.
func (s *session) CopyLog(from io.Reader) error {
	if !s.Interactive {
		_, err := io.Copy(s.Out, from)
		return err
	}
	part := make([]byte, 64<<10)
	for {
		n, err := from.Read(part)
		if n > 0 {
			if err := s.PrintLog(s.Out, string(part[:n])); err != nil {
				return err
			}
		}
		if err == io.EOF { //nolint:errorlint // Read returns it bare
			return nil
		}
		if err != nil {
			return err
		}
	}
}
