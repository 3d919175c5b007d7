package task

import (
	"errors"
	"io/fs"
	"time"
)

// stopRecord is the content of the file stop: when the end was first asked
// for, by the clock and by the time since the machine started.
type stopRecord struct {
	Protocol      int       `json:"protocol"`
	AskedAt       time.Time `json:"askedAt"`
	UptimeSeconds float64   `json:"uptimeSeconds"`
}

// AskStop notes that the task's end is wanted and tells how long ago that was
// first asked for. The note makes the difference between a task that was
// stopped and one that the machine took down; it also reaches a task that has
// not begun yet. A signal has to follow to hurry one that has.
func AskStop(dir string) (time.Duration, error) {
	now, err := uptime()
	if err != nil {
		return 0, err
	}
	first, err := read[stopRecord](dir, StopFile)
	if err == nil {
		return max(0, now-time.Duration(first.UptimeSeconds*float64(time.Second))), nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrUnreadable) {
		return 0, err
	}
	return 0, write(dir, StopFile, stopRecord{
		Protocol:      Protocol,
		AskedAt:       time.Now().UTC().Truncate(time.Millisecond),
		UptimeSeconds: now.Seconds(),
	})
}

// StopAsked reports whether the task's end was asked for.
func StopAsked(dir string) bool { return Exists(dir, StopFile) }
