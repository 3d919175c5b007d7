package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// Protocol is the version of the files that this program writes, and the newest that it
// can read.
const Protocol = 1

// The files in the directory of an attempt.
const (
	SpecFile     = "task.json"
	RunFile      = "run.json"
	LockFile     = "run.lock"
	ProgressFile = "progress.json"
	LogFile      = "log"
	StopFile     = "stop"
	SandboxFile  = "sandbox.json"
	OutcomeFile  = "outcome.json"
	WrittenFile  = "written.json" // by the task: bytes it has written
	ShareFile    = "share.json"   // by the service: bytes the task can write
	ClaimDir     = "claim"        // on a cluster: made by the cluster job that runs the attempt
	WorkDir      = "work"
	OutDir       = "out" // below WorkDir: the job's output
	TempDir      = "tmp" // below WorkDir
	InDir        = "in"  // below WorkDir: copies of the job's files, read-only
	SettingsFile = "settings.json"
)

// ErrUnreadable means that a file exists but is invalid, or was written by a newer
// version of molrun. Reading it again does not help.
var ErrUnreadable = errors.New("unreadable")

// Started is the content of run.json: the process that runs the task.
type Started struct {
	Protocol int `json:"protocol"`
	process.ID
	Token     string    `json:"token"`
	Isolation string    `json:"isolation,omitempty"` // bubblewrap, cgroup, bubblewrap+cgroup or none
	StartedAt time.Time `json:"startedAt"`
}

// ReadRun returns the content of run.json. Like the other readers, it returns
// fs.ErrNotExist if the file does not exist yet.
func ReadRun(dir string) (*Started, error) { return readFile[Started](dir, RunFile) }

// ReadOutcome returns the content of outcome.json.
func ReadOutcome(dir string) (*protocol.Outcome, error) {
	return readFile[protocol.Outcome](dir, OutcomeFile)
}

// ReadProgress returns the program's last progress report.
func ReadProgress(dir string) (*protocol.Progress, error) {
	r, err := readFile[progressRecord](dir, ProgressFile)
	if err != nil {
		return nil, err
	}
	return &r.Progress, nil
}

// Exists reports whether the attempt in dir has the file. If that can't be determined it
// reports true, because its callers would otherwise run a task twice.
func Exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return !errors.Is(err, os.ErrNotExist)
}

// readFile decodes a file of an attempt. It ignores unknown members, because later
// versions can add some without a new protocol number.
func readFile[T any](dir, name string) (*T, error) {
	data, err := readWhole(dir, name)
	if err != nil {
		return nil, err
	}
	var head struct {
		Protocol int `json:"protocol"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("%s is %w: %w", name, ErrUnreadable, err)
	}
	if head.Protocol < 1 || head.Protocol > Protocol {
		return nil, fmt.Errorf("%s is %w: it has protocol version %d, but this version of molrun supports only 1 to %d; install the version that wrote it",
			name, ErrUnreadable, head.Protocol, Protocol)
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("%s is %w: %w", name, ErrUnreadable, err)
	}
	return v, nil
}

// largestFile limits how much of a file is read. Real files are far smaller.
const largestFile = 16 << 20

func readWhole(dir, name string) ([]byte, error) {
	f, err := openFile(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largestFile+1))
	if err == nil && len(data) > largestFile {
		return nil, fmt.Errorf("%s is %w: it exceeds %d bytes", name, ErrUnreadable, largestFile)
	}
	return data, err
}

// openFile opens a file of an attempt. Programs can replace these files with anything, so
// it rejects everything but regular files, and does not block on a pipe.
func openFile(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) { // a link, a socket
		return nil, notRegular(name)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func notRegular(name string) error {
	return fmt.Errorf("%s is %w: it is not a regular file", name, ErrUnreadable)
}
