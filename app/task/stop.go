package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// stopRecord is the content of the file stop: when a user first asked the task to stop,
// by the clock and as the time since boot.
type stopRecord struct {
	Protocol      int       `json:"protocol"`
	AskedAt       time.Time `json:"askedAt"`
	UptimeSeconds float64   `json:"uptimeSeconds"`
}

// RequestStop writes the file stop, and returns the time since the first request. The
// file distinguishes a stopped task from one that ended with the machine, and also stops
// a task that has not started yet. To stop a running task, send a signal afterwards.
func RequestStop(dir string) (time.Duration, error) {
	now, err := uptime()
	if err != nil {
		return 0, err
	}
	first, err := readFile[stopRecord](dir, StopFile)
	if err == nil {
		return max(0, now-time.Duration(first.UptimeSeconds*float64(time.Second))), nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrUnreadable) {
		return 0, err
	}
	return 0, writeFile(dir, StopFile, stopRecord{
		Protocol:      Protocol,
		AskedAt:       milliseconds(time.Now()),
		UptimeSeconds: now.Seconds(),
	})
}

// StopRequested reports whether the task was asked to stop.
func StopRequested(dir string) bool { return Exists(dir, StopFile) }

// uptime returns the time since boot, which can't be changed, unlike the clock.
func uptime() (time.Duration, error) {
	data, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	text, _, _ := strings.Cut(string(data), " ")
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("read the uptime: %w", err)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
