package delivery

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/unit"
	"molrun/app/job/notice"
)

// Email is an e-mail message.
type Email struct {
	ID      string // the same for every attempt
	To      string
	Subject string
	Text    string
}

// composeEmail composes the e-mail about a job that has ended.
func composeEmail(d *notice.Delivery, link func(jobName string) string) (l Email, err error) {
	var told struct{ Data app.Job }
	if err := json.Unmarshal(d.Body, &told); err != nil {
		return l, fmt.Errorf("read notification %s: %w", d.ID, err)
	}
	j := &told.Data
	l.ID = d.ID
	l.To, _ = notice.Address(d.Target)
	noun := "Job"
	if j.IsBatch() {
		noun = "Batch"
	}
	l.Subject = fmt.Sprintf("%s %q is %s", noun, j.Name, j.Status)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q", noun, j.Name)
	if j.Type != "" {
		fmt.Fprintf(&b, " (%s)", j.Type)
	}
	fmt.Fprintf(&b, " of %s is %s.\n\n", j.Email, j.Status)
	if c := j.Counts; c != nil {
		fmt.Fprintf(&b, "%d of %d jobs completed, %d failed.\n\n", c.Completed, c.Total(), c.Failed)
	}
	if f := j.Failure; f != nil {
		fmt.Fprintf(&b, "%s\n\n", f.Message)
	}
	fmt.Fprintf(&b, "Submitted  %s\n", moment(j.CreatedAt))
	if !j.StartedAt.IsZero() {
		fmt.Fprintf(&b, "Started    %s\n", moment(j.StartedAt))
	}
	fmt.Fprintf(&b, "Ended      %s%s\n", moment(j.CompletedAt), took(j))
	if j.Note != "" {
		fmt.Fprintf(&b, "\nNote: %s\n", j.Note)
	}
	if url := link(j.Name); url != "" {
		fmt.Fprintf(&b, "\n%s\n", url)
	}
	l.Text = b.String()
	return l, nil
}

func moment(t unit.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func took(j *app.Job) string {
	if j.StartedAt.IsZero() {
		return ""
	}
	return fmt.Sprintf(", after %s", j.CompletedAt.Sub(j.StartedAt.Time).Round(time.Second))
}
