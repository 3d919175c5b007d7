package task

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process names a process for ever. A number alone would not: it is used
// again, soon on a busy machine and at once after a restart.
type Process struct {
	PID       int    `json:"pid"`
	BootID    string `json:"bootId"`
	StartTime uint64 `json:"startTime"` // in clock ticks since the machine started
}

// ErrGone says that a process is no more.
var ErrGone = errors.New("the process is gone")

// FindProcess names the process that has the number now.
func FindProcess(pid int) (Process, error) {
	boot, err := BootID()
	if err != nil {
		return Process{}, err
	}
	s, err := readStat(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{PID: pid, BootID: boot, StartTime: s.start}, nil
}

// BootID names the time from this start of the machine to the next.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// Signal sends sig to the process, and to no other that got its number since:
// the number is pinned first (a pidfd), then compared. It gives ErrGone where
// there is nothing to signal.
func (p Process) Signal(sig syscall.Signal) error {
	boot, err := BootID()
	if err != nil {
		return err
	}
	if boot != p.BootID {
		return ErrGone
	}
	return signalIf(p.PID, sig, func() bool {
		s, err := readStat(p.PID)
		return err == nil && s.start == p.StartTime
	})
}

// signalIf sends sig to a process that is still the one meant.
func signalIf(pid int, sig syscall.Signal, meant func() bool) error {
	if pid <= 0 { // would be a whole group
		return ErrGone
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", pid, err)
	}
	defer p.Release()
	if !meant() {
		return ErrGone
	}
	err = p.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return ErrGone
	}
	return err
}

// stat is what this package needs of /proc/PID/stat.
type stat struct {
	parent int
	start  uint64
	zombie bool
}

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, ErrGone
	}
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// parseStat reads the fields after the program's name, which may itself hold
// spaces and parentheses.
func parseStat(data []byte) (stat, error) {
	const state, parent, start = 0, 1, 19 // fields 3, 4 and 22, counted after the name
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= start {
		return stat{}, fmt.Errorf("process status %q has too few fields", data)
	}
	ppid, err := strconv.Atoi(string(fields[parent]))
	if err != nil {
		return stat{}, fmt.Errorf("process status: %w", err)
	}
	ticks, err := strconv.ParseUint(string(fields[start]), 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("process status: %w", err)
	}
	s := fields[state][0]
	return stat{parent: ppid, start: ticks, zombie: s == 'Z' || s == 'X'}, nil
}

// uptime gives the time since the machine started; unlike the clock nobody
// sets it.
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
