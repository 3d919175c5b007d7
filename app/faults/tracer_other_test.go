//go:build !(linux && amd64)

package faults

import (
	"errors"
	"os"
)

func canInject() error { return errors.New("system calls are made to fail on amd64 alone") }

func allowTracer() {}

func stopAt([]string) error { return canInject() }

func traceThread(int, injection, *os.File) error { return canInject() }
