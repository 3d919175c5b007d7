package task

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// shim is the process between the service and the programs of a task. One goroutine
// starts, watches, kills and reaps programs, so that no other code can reap a child; a
// second one per step reads output.
type shim struct {
	*host
	dir, work        string
	isolation        Isolation       // that of the process, completed by the task
	cgroup           *process.Cgroup // of all programs; nil means none
	spec             *Spec
	image            string            // image of the containers, as named by their runtime
	site             map[string]string // variables set by modules or conda
	log              *logFile
	progress         progress
	memory           memory
	disk             disk
	used             float64 // CPU seconds used by earlier children of this process
	sharedCPUSeconds float64 // of the task's steps in a shared sandbox
	largest          int64   // memory of the largest process, in bytes

	timeout <-chan time.Time

	begin   time.Time
	outcome protocol.Outcome // Cause is empty until it is decided
}

func newShim(h *host, dir string) *shim {
	s := &shim{
		host: h, dir: dir, work: filepath.Join(dir, WorkDir), isolation: h.isolation, begin: time.Now(),
		progress: progress{dir: dir},
	}
	s.used = h.cpuSeconds()
	return s
}

// announce writes run.json. From then on, this process receives signals. An earlier stop
// request has left the file stop.
func (s *shim) announce() error {
	token := ""
	spec, err := ReadSpec(s.dir)
	if err != nil {
		// Retrying does not help.
		s.decide(protocol.CauseCannotStart, err.Error())
	} else {
		s.spec, token = spec, spec.Token
	}
	return writeUnsynced(s.dir, RunFile, Started{
		Protocol: Protocol, ID: s.self, Token: token, Isolation: s.isolation.Kind(), StartedAt: milliseconds(s.begin),
	})
}

// runSteps runs the steps until one fails or the task is stopped.
func (s *shim) runSteps() {
	if s.outcome.Cause != "" {
		return
	}
	if err := s.prepare(); err != nil {
		s.decide(protocol.CauseCannotStart, sentence(err.Error()))
		return
	}
	if StopRequested(s.dir) {
		s.interrupt()
	}
	for i, step := range s.spec.Steps {
		if s.outcome.Cause != "" {
			break
		}
		if step.Name == "" {
			step.Name = fmt.Sprint(i + 1)
		}
		s.runStep(step, advanceOf(s.spec.Steps, i, s.progress.set), i == len(s.spec.Steps)-1)
	}
	s.progress.finish()
	if s.isolation.Runtime != nil {
		endHolders()
	}
	if err := s.removeCgroup(); err != nil {
		fmt.Fprintf(os.Stderr, "remove the cgroup: %v\n", err)
	}
	if err := s.log.Close(); err != nil {
		fmt.Fprintf(os.Stderr, "close the log: %v\n", err)
	}
}

// prepare opens the files that all steps share and starts the time limit.
func (s *shim) prepare() (err error) {
	if err := os.MkdirAll(filepath.Join(s.work, TempDir), 0o700); err != nil {
		return err
	}
	s.memory.limit = s.spec.MemoryBytes
	s.disk = disk{reserve: s.isolation.Reserve, limit: s.spec.StorageBytes}
	if limit := s.spec.MaxRuntimeSeconds; limit > 0 {
		s.timeout = time.After(time.Until(s.begin.Add(time.Duration(limit) * time.Second)))
	}
	if s.log, err = openLog(s.dir, s.spec.logBytes()); err != nil {
		return err
	}
	s.log.unsynced = s.unsynced
	s.pin()
	if !s.isolation.hasExternalPrograms() {
		return nil
	}
	return s.runPreparation(s.findPrograms)
}

// pin makes the programs run on the task's CPUs, by pinning this thread, which starts
// them.
func (s *shim) pin() {
	if len(s.spec.CPUSet) == 0 {
		return
	}
	if err := process.Pin(s.spec.CPUSet); err != nil {
		fmt.Fprintln(os.Stderr, err) // they run on other CPUs, perhaps slower
	}
}

// pollStop reports whether the running task was stopped, and ends waiting tasks that
// were stopped.
func (s *shim) pollStop() bool {
	s.checkOthers()
	return StopRequested(s.dir)
}
