package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/task/process"
)

// errNoAnswer says that the tool was not done in time, or that an earlier one can't be
// killed, as while it waits for a broken driver.
var errNoAnswer = errors.New("nvidia-smi does not answer")

// errNotRun says that the tool could not be started, which says nothing about the GPUs.
var errNotRun = errors.New("nvidia-smi could not be started")

// tool runs nvidia-smi, one process at a time. Its methods must not be called concurrently.
type tool struct {
	path  string
	root  string // of /proc
	bound time.Duration
	child chan struct{} // closed when the last process has ended; nil: there was none
}

// look asks for all that there is to know. An error says that nothing is known.
func (t *tool) look(ctx context.Context, known []string) (*listing, error) {
	l := &listing{complete: true}
	text, err := t.run(ctx, "--query-gpu="+allFields, "--format=csv,noheader,nounits")
	if strings.Contains(text, unknownField) {
		text, err = t.run(ctx, "--query-gpu="+fewFields, "--format=csv,noheader,nounits")
	}
	if err := l.add(text, err); err != nil {
		return nil, err
	}
	if err := t.lookOneByOne(ctx, l, known); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(l.cards, func(c card) bool { return c.divided }) {
		list, err := t.run(ctx, "-L")
		if err := noAnswer(err); err != nil {
			return nil, err
		}
		l.addInstances(list)
	}
	if slices.ContainsFunc(l.cards, func(c card) bool { return c.uuid != "" }) {
		text, err := t.run(ctx, "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits")
		if err := noAnswer(err); err != nil {
			return nil, err
		}
		l.addProcesses(text)
	}
	return l, nil
}

// add adds the answer to a query for cards.
func (l *listing) add(text string, err error) error {
	if err := noAnswer(err); err != nil {
		return err
	}
	l.addCards(text)
	if err == nil {
		return nil
	}
	l.complete = false
	if !slices.ContainsFunc(l.cards, func(c card) bool { return c.fault == app.GPULost }) { // else that is why
		l.notes = append(l.notes, err.Error())
	}
	return nil
}

// lookOneByOne asks for each card by itself if there is none but lost ones: older drivers
// name the first that is lost, and stop.
func (t *tool) lookOneByOne(ctx context.Context, l *listing, known []string) error {
	if len(l.cards) == 0 || slices.ContainsFunc(l.cards, func(c card) bool { return c.uuid != "" }) {
		return nil
	}
	lost := slices.Clone(l.cards)
	for _, bus := range t.buses(known) {
		if slices.ContainsFunc(lost, func(c card) bool { return c.bus == bus }) {
			continue
		}
		text, err := t.run(ctx, "--id="+bus, "--query-gpu="+allFields, "--format=csv,noheader,nounits")
		if err := noAnswer(err); err != nil {
			return err
		}
		l.addCards(text)
	}
	return nil
}

// buses returns the addresses of the cards that were seen before, or that the driver lists.
func (t *tool) buses(known []string) []string {
	all := slices.Clone(known)
	driver, err := filepath.Glob(filepath.Join(t.root, "proc/driver/nvidia/gpus/*"))
	if err == nil { // always: the pattern is valid
		for _, path := range driver {
			all = append(all, busOf(filepath.Base(path)))
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(bus string) bool { return bus == "" })
}

// noAnswer returns err if it says that the tool did not answer.
func noAnswer(err error) error {
	if errors.Is(err, errNoAnswer) || errors.Is(err, errNotRun) {
		return err
	}
	return nil
}

// run runs the tool and returns what it prints, also where it fails. If its process can't be
// killed, run returns nevertheless, and no further process starts before that one has ended.
func (t *tool) run(ctx context.Context, args ...string) (string, error) {
	if !t.idle() {
		return "", fmt.Errorf("%w: an earlier process of it can't be killed", errNoAnswer)
	}
	ctx, cancel := context.WithTimeout(ctx, t.bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out := &process.Output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("%w: %w", errNotRun, err)
	}
	ended, result := make(chan struct{}), error(nil)
	t.child = ended
	go func() { // it ends with the process, for which the next run waits
		result = cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		select {
		case <-ended:
		case <-time.After(2 * cmd.WaitDelay):
		}
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%w within %v", errNoAnswer, t.bound)
	}
	return out.String(), result
}

// idle reports whether no process runs.
func (t *tool) idle() bool {
	if t.child == nil {
		return true
	}
	select {
	case <-t.child:
		return true
	default:
		return false
	}
}
