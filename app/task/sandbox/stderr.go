package sandbox

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"molrun/app/task/protocol"
)

// stderr forwards the error output of bwrap or of a runtime to that of this process, and
// keeps its beginning.
type stderr struct {
	pipe *os.File
	done chan struct{}
	mu   sync.Mutex
	text strings.Builder
}

const mostStderr = 4 << 10

func captureStderr(pipe *os.File) *stderr {
	s := &stderr{pipe: pipe, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		io.Copy(io.MultiWriter(os.Stderr, s), pipe) // until the last writer has exited, or end is called
	}()
	return s
}

// Write keeps the beginning.
func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p[:min(len(p), max(0, mostStderr-s.text.Len()))])
	return len(p), nil
}

// beginning returns the first output, once the writer has exited.
func (s *stderr) beginning() string {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// end waits for the last output of processes that have exited. It can be called more than
// once.
func (s *stderr) end() {
	s.pipe.SetReadDeadline(time.Now().Add(endTimeout)) // fails after the first call
	<-s.done
	s.pipe.Close()
}

// firstLine returns the first line of bwrap's output, for use in a sentence, or "" if
// there is none.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimPrefix(line, "bwrap: ")
	return protocol.CleanText(line)
}
