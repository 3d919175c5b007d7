package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// ID identifies a process permanently. A PID does not: the kernel reuses it, soon on a
// busy machine and immediately after a reboot.
type ID struct {
	PID       int    `json:"pid"`
	BootID    string `json:"bootId"`
	StartTime uint64 `json:"startTime"` // in clock ticks since boot
}

// ErrGone means that a process no longer exists.
var ErrGone = errors.New("the process has exited")

// IDOf returns the ID of the process that currently has this PID.
func IDOf(pid int) (ID, error) {
	boot, err := BootID()
	if err != nil {
		return ID{}, err
	}
	s, err := readStat(pid)
	if err != nil {
		return ID{}, err
	}
	return ID{PID: pid, BootID: boot, StartTime: s.start}, nil
}

// BootID returns the kernel's ID of the current boot.
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// Signal sends sig to the process, and never to another one that reused its PID: it opens
// a pidfd first and compares start times afterwards. It returns ErrGone if the process no
// longer exists.
func (id ID) Signal(sig syscall.Signal) error {
	boot, err := BootID()
	if err != nil {
		return err
	}
	if boot != id.BootID {
		return ErrGone
	}
	return Descendant{id.PID, id.StartTime}.Signal(sig)
}

// AwaitEnd waits until the process has exited or ctx is done.
func (id ID) AwaitEnd(ctx context.Context) error {
	for id.running() {
		if err := pause(ctx, killPause); err != nil {
			return err
		}
	}
	return nil
}

// Ended reports whether the process has exited.
func (id ID) Ended() bool { return !id.running() }

// running is false for a zombie.
func (id ID) running() bool {
	boot, err := BootID()
	if err != nil || boot != id.BootID {
		return false
	}
	s, err := readStat(id.PID)
	return err == nil && s.start == id.StartTime && !s.zombie
}

// signalIf sends sig if isTarget still holds once a pidfd has pinned the PID.
func signalIf(pid int, sig syscall.Signal, isTarget func() bool) error {
	if pid <= 0 { // a PID of 0 or less would signal a process group
		return ErrGone
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return fmt.Errorf("find process %d: %w", pid, err)
	}
	defer p.Release()
	if !isTarget() {
		return ErrGone
	}
	err = p.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return ErrGone
	}
	return err
}

// killPause is the time between two checks whether killed processes have exited.
const killPause = 10 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
