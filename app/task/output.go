package task

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// output copies what a program prints from a pipe to the log.
type output struct {
	pipe *os.File
	done chan struct{}
}

// outputTimeout bounds the wait for output after the last process has ended.
// The pipe is still open only if a process outside of the task has got it.
const outputTimeout = 5 * time.Second

// readOutput starts to copy.
func (s *shim) readOutput(pipe *os.File) *output {
	o := &output{pipe: pipe, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		filter := &progressFilter{out: s.log, report: s.progress.set}
		// It ends when the last writer is gone, or by finish.
		io.CopyBuffer(filter, struct{ io.Reader }{pipe}, make([]byte, 64<<10))
		filter.Flush()
	}()
	return o
}

// finish waits for the last output of a step whose processes are all gone.
func (o *output) finish() error {
	o.pipe.SetReadDeadline(time.Now().Add(outputTimeout))
	<-o.done
	return o.pipe.Close()
}

// createStdout makes the file for a step's standard output, always below the
// work directory. An earlier step may have put a link there, which os.Root does
// not follow out of the directory, or a pipe, which would block.
func createStdout(work, name string) (f *os.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the output file %q: %w", name, err)
		}
	}()
	path := name
	if filepath.IsAbs(name) {
		if path, err = filepath.Rel(work, name); err != nil {
			return nil, err
		}
	}
	if !filepath.IsLocal(path) || path == "." {
		return nil, errors.New("it is outside of the work directory; correct the algorithm's stdout")
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err = root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it exists already and is not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
