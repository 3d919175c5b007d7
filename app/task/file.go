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

	"molrun/app/protocol"
)

// Protocol is the form of the files that this program writes, and the newest
// that it reads.
const Protocol = 1

// The files of an attempt's directory.
const (
	SpecFile     = "task.json"
	RunFile      = "run.json"
	LockFile     = "run.lock"
	ProgressFile = "progress.json"
	LogFile      = "log"
	StopFile     = "stop"
	SandboxFile  = "sandbox.json"
	OutcomeFile  = "outcome.json"
	ClaimDir     = "claim" // on a cluster: made by the job that runs the attempt
	WorkDir      = "work"
	OutDir       = "out" // below WorkDir: what is kept of it
	TempDir      = "tmp" // below WorkDir
	InDir        = "in"  // below WorkDir: copies of the job's files, only read
	SettingsFile = "settings.json"
)

// What a task gets where its Spec says nothing.
const (
	DefaultLogBytes     = 16 << 20
	DefaultGraceSeconds = 10
)

// ErrUnreadable says that a file is there and makes no sense, or only to a
// newer version. To read it again would not help.
var ErrUnreadable = errors.New("unreadable")

// Spec is the content of task.json: all that is needed to run an attempt.
type Spec struct {
	Protocol          int               `json:"protocol"`
	Token             string            `json:"token"`
	Job               string            `json:"jobId"`
	Attempt           int               `json:"attempt"`
	Steps             []protocol.Step   `json:"steps"`
	Env               map[string]string `json:"env,omitempty"`
	GPUs              []string          `json:"gpus,omitempty"` // leased devices
	CPUs              int               `json:"cpus"`
	MaxRuntimeSeconds int64             `json:"maxRuntimeSeconds"` // of all steps together; 0 is no limit
	MemoryBytes       int64             `json:"memoryBytes"`       // of all processes together; 0 is no limit
	LogBytes          int64             `json:"logBytes"`          // 0 is DefaultLogBytes
	GraceSeconds      int64             `json:"graceSeconds"`      // from TERM to KILL; 0 is DefaultGraceSeconds
}

// Grace gives how long a program has to end once it is asked to.
func (s *Spec) Grace() time.Duration {
	if s.GraceSeconds <= 0 {
		return DefaultGraceSeconds * time.Second
	}
	return time.Duration(s.GraceSeconds) * time.Second
}

func (s *Spec) logBytes() int64 {
	if s.LogBytes <= 0 {
		return DefaultLogBytes
	}
	return s.LogBytes
}

// Started is the content of run.json: the process that runs the task.
type Started struct {
	Protocol int `json:"protocol"`
	Process
	Token     string    `json:"token"`
	Isolation string    `json:"isolation,omitempty"` // bubblewrap, cgroup, bubblewrap+cgroup or none
	StartedAt time.Time `json:"startedAt"`
}

// progressRecord is the content of progress.json.
type progressRecord struct {
	Protocol int `json:"protocol"`
	protocol.Progress
}

// Write lays down task.json in an attempt's directory.
func Write(dir string, s Spec) error {
	s.Protocol = Protocol
	if s.Token == "" || len(s.Steps) == 0 {
		return errors.New("write task.json: a task needs a token and a step")
	}
	return write(dir, SpecFile, s)
}

// Read gives the content of task.json.
func Read(dir string) (*Spec, error) { return read[Spec](dir, SpecFile) }

// ReadRun gives the content of run.json. Like the other readers it gives an
// error that is fs.ErrNotExist where the file is not there yet.
func ReadRun(dir string) (*Started, error) { return read[Started](dir, RunFile) }

// ReadOutcome gives the content of outcome.json.
func ReadOutcome(dir string) (*protocol.Outcome, error) {
	return read[protocol.Outcome](dir, OutcomeFile)
}

// ReadProgress gives what the program last said of itself.
func ReadProgress(dir string) (*protocol.Progress, error) {
	r, err := read[progressRecord](dir, ProgressFile)
	if err != nil {
		return nil, err
	}
	return &r.Progress, nil
}

// read decodes a file of an attempt. Members it does not know are ignored: an
// upgrade may add some within a protocol.
func read[T any](dir, name string) (*T, error) {
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
		return nil, fmt.Errorf("%s is %w: it has protocol %d and this molrun reads 1 to %d; install the version that wrote it",
			name, ErrUnreadable, head.Protocol, Protocol)
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("%s is %w: %w", name, ErrUnreadable, err)
	}
	return v, nil
}

// largestFile bounds what is read of a file. No task comes near it.
const largestFile = 16 << 20

func readWhole(dir, name string) ([]byte, error) {
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largestFile+1))
	if err == nil && len(data) > largestFile {
		return nil, fmt.Errorf("%s is %w: it is longer than %d bytes", name, ErrUnreadable, largestFile)
	}
	return data, err
}

// open opens a file of an attempt. A program can reach these files and put
// anything in their place: what is no file is unreadable, and holds up nobody
// who tries, as a pipe would.
func open(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) { // a link, a socket
		return nil, notFile(name)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notFile(name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func notFile(name string) error { return fmt.Errorf("%s is %w: it is no file", name, ErrUnreadable) }

// write puts v into a file that appears whole or not at all and stays.
func write(dir, name string, v any) error {
	data, err := encode(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	temp, err := writeTemp(dir, name, data)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := install(temp, dir, name); err != nil {
		return fmt.Errorf("write %s: %w", name, errors.Join(err, os.Remove(temp)))
	}
	return nil
}

// writeForNow puts v into a file that appears whole or not at all, but does not
// wait until it is stored: it is for what a restart of the machine makes
// meaningless.
func writeForNow(dir, name string, v any) error {
	data, err := encode(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(path+".new", path)
}

func encode(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// writeTemp stores data under a passing name beside name and gives its path.
func writeTemp(dir, name string, data []byte) (string, error) {
	f, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// install gives a stored file its name, for good.
func install(temp, dir, name string) error {
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Exists reports whether an attempt has the file. Doubt counts as yes: what
// asks would otherwise run a task twice.
func Exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return !errors.Is(err, os.ErrNotExist)
}
