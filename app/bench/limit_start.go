package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// concurrentStarts is how many jobs run concurrently, and how many processes in
// the limit.
const concurrentStarts = 4

// limitStarts measures how fast the machine starts and reaps processes that do
// nothing, each in a new directory with two log files and in its own session.
func limitStarts(ctx context.Context, dir string, d time.Duration) (s sample, err error) {
	dir, err = os.MkdirTemp(dir, "starts-")
	if err != nil {
		return s, err
	}
	var number atomic.Int64
	return closedLoop(ctx, concurrentStarts, d, local(func() error {
		return startOne(filepath.Join(dir, fmt.Sprint(number.Add(1))))
	}))
}

func startOne(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	stdout, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		return err
	}
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return errors.Join(err, stdout.Close())
	}
	c := exec.Command("/bin/true")
	c.Dir, c.Stdout, c.Stderr = dir, stdout, stderr
	c.Env = []string{"PATH=/usr/bin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return errors.Join(c.Run(), stdout.Close(), stderr.Close())
}
