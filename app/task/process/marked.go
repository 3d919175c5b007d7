package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// TokenVariable is the environment variable that marks every process of a task with the
// task's token. A process keeps it when it leaves its session or loses its parent.
const TokenVariable = "MOLRUN_TASK"

// KillMarked kills every process that is marked with the token, and waits until none
// remains or ctx is done. It is for tasks whose own process has exited, so it gives the
// processes no time to exit on their own.
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
			return fmt.Errorf("processes %v were killed but have not exited: %w", marked, err)
		}
	}
}

// Marked returns the PIDs of the processes that are marked with the token. Only root sees
// the processes of other users.
func Marked(token string) ([]int, error) {
	if token == "" {
		return nil, errors.New("find a task's processes: it has no token")
	}
	pids, err := allPIDs()
	if err != nil {
		return nil, err
	}
	var marked []int
	for _, pid := range pids {
		if isMarked(pid, token) {
			marked = append(marked, pid)
		}
	}
	return marked, nil
}

// isMarked reports whether a process has the token. It is false for a zombie, which has
// no environment.
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
