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

// outputTimeout limits the wait for output after the last process has exited. The pipe is
// then still open only if a process outside the task holds it.
const outputTimeout = 5 * time.Second

// readOutput starts copying.
func (r *runningStep) readOutput(pipe *os.File) *output {
	o := &output{pipe: pipe, done: make(chan struct{})}
	readers := []io.Writer{r.log}
	if r.printed != nil {
		readers = append(readers, r.printed)
	}
	if r.gauge != nil {
		readers = append(readers, r.gauge)
	}
	go func() {
		defer close(o.done)
		filter := &markFilter{out: io.MultiWriter(readers...), report: r.advance.report, warn: r.warn}
		// Copying ends when the last writer has exited, or through finish.
		io.CopyBuffer(filter, struct{ io.Reader }{pipe}, make([]byte, 64<<10))
		filter.Flush()
	}()
	return o
}

// finish waits for the last output of a step whose processes have all exited.
func (o *output) finish() error {
	o.pipe.SetReadDeadline(time.Now().Add(outputTimeout))
	<-o.done
	return o.pipe.Close()
}

// createStdout creates the file for a step's standard output.
func createStdout(work, name string) (*os.File, error) {
	return openBelow(work, name, "output file", func(root *os.Root, path string) (*os.File, error) {
		if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		return root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	})
}

// openToRead opens a file in the work directory for reading.
func openToRead(work, name string) (*os.File, error) {
	return openBelow(work, name, "file", func(root *os.Root, path string) (*os.File, error) {
		return root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	})
}

// openBelow opens a regular file, always below the work directory. An earlier step might
// have put a link there, which os.Root does not follow out of the directory, or a pipe,
// which would block.
func openBelow(work, name, what string, open func(*os.Root, string) (*os.File, error)) (f *os.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the %s %q: %w", what, name, err)
		}
	}()
	path, err := pathBelow(work, name)
	if err == nil && path == "." {
		err = errOutside
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if f, err = open(root, path); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

var errOutside = errors.New("it is outside the work directory; correct the algorithm file")

// pathBelow returns name relative to the work directory, and an error if it is outside.
func pathBelow(work, name string) (path string, err error) {
	if path = name; filepath.IsAbs(name) {
		if path, err = filepath.Rel(work, name); err != nil {
			return "", err
		}
	}
	if !filepath.IsLocal(path) {
		return "", errOutside
	}
	return path, nil
}

// makeFolder creates a program's current directory.
func makeFolder(work, name string) error {
	path, err := pathBelow(work, name)
	if err != nil || path == "." {
		return err
	}
	root, err := os.OpenRoot(work)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make the folder %q: %w", name, err)
	}
	return nil
}
