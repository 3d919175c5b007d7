package main

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// digestCost gives the CPU seconds that SHA-256 takes of a GiB, beyond reading
// it.
func digestCost(path string, size int64) (float64, error) {
	hashing, err := readCost(path, sha256.New())
	if err != nil {
		return 0, err
	}
	reading, err := readCost(path, io.Discard)
	return (hashing - reading).Seconds() / (float64(size) / (1 << 30)), err
}

func readCost(path string, to io.Writer) (time.Duration, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	before, err := ownCPU()
	if err != nil {
		return 0, err
	}
	// The wrappers keep io.CopyBuffer from finding another way.
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{f}, make([]byte, 256<<10))
	if err != nil {
		return 0, err
	}
	after, err := ownCPU()
	return after - before, err
}

// opensslCost gives what OpenSSL takes for the same, reading included; false
// where it is not installed.
func opensslCost(ctx context.Context, path string, size int64) (float64, bool) {
	c := exec.CommandContext(ctx, "openssl", "dgst", "-sha256", path)
	if c.Run() != nil {
		return 0, false
	}
	used := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	return used.Seconds() / (float64(size) / (1 << 30)), true
}

// ownCPU gives the CPU time of this process, more exactly than /proc.
func ownCPU() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, err
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
