package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// TokenVariable is the environment variable that marks every process of a
// task with its token, also those that left its session and its parent.
const TokenVariable = "MOLRUN_TASK"

// killPause is how long the killed get to vanish before they are counted
// again.
const killPause = 10 * time.Millisecond

// KillMarked kills every process that is marked with the token and waits until
// none is left or ctx ends. It is for tasks whose own process is gone; they
// had their time to end.
func KillMarked(ctx context.Context, token string) error {
	for {
		marked, err := Marked(token)
		if err != nil || len(marked) == 0 {
			return err
		}
		for _, pid := range marked {
			err := signalIf(pid, syscall.SIGKILL, func() bool { return isMarked(pid, token) })
			if err != nil && !errors.Is(err, ErrGone) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		if err := pause(ctx, killPause); err != nil {
			return fmt.Errorf("processes %v are killed and still there: %w", marked, err)
		}
	}
}

// Marked gives the numbers of the processes that are marked with the token.
// Those of other users stay unseen, unless root asks.
func Marked(token string) ([]int, error) {
	if token == "" {
		return nil, errors.New("look for a task's processes: it has no token")
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var marked []int
	for _, pid := range all {
		if isMarked(pid, token) {
			marked = append(marked, pid)
		}
	}
	return marked, nil
}

// isMarked is false for a zombie: its memory is gone, environment included.
func isMarked(pid int, token string) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	mark := []byte(TokenVariable + "=" + token)
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(entry, mark) {
			return true
		}
	}
	return false
}

// processes gives the numbers of all processes of the machine.
func processes() ([]int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

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
