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

// errNoAnswer means that nvidia-smi did not finish in time, or that an earlier process
// can't be killed, as while it waits for a broken driver.
var errNoAnswer = errors.New("nvidia-smi does not respond")

// errNotRun means that nvidia-smi could not be started, which is no information about the
// GPUs.
var errNotRun = errors.New("nvidia-smi could not be started")

// tool runs nvidia-smi, one process at a time. Its methods must not be called concurrently.
type tool struct {
	path  string
	root  string // parent of /proc
	bound time.Duration
	child chan struct{} // closed when the last process has exited; nil if there was none
}

// look queries everything about the GPUs. An error means that nothing is known.
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

// add adds the output of a query for cards.
func (l *listing) add(text string, err error) error {
	if err := noAnswer(err); err != nil {
		return err
	}
	l.addCards(text)
	if err == nil {
		return nil
	}
	l.complete = false
	if !slices.ContainsFunc(l.cards, func(c card) bool { return c.fault == app.GPULost }) { // otherwise that is the cause
		l.notes = append(l.notes, err.Error())
	}
	return nil
}

// lookOneByOne queries each card separately if only lost ones are listed: older drivers
// stop at the first lost card.
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

// buses returns the addresses of the cards that were seen before or are listed by the
// driver.
func (t *tool) buses(known []string) []string {
	all := slices.Clone(known)
	driver, err := filepath.Glob(filepath.Join(t.root, "proc/driver/nvidia/gpus/*"))
	if err == nil { // always true: the pattern is valid
		for _, path := range driver {
			all = append(all, busOf(filepath.Base(path)))
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(bus string) bool { return bus == "" })
}

// noAnswer returns err if it means that nvidia-smi did not respond, otherwise nil.
func noAnswer(err error) error {
	if errors.Is(err, errNoAnswer) || errors.Is(err, errNotRun) {
		return err
	}
	return nil
}

// run runs nvidia-smi and returns its output, even if it fails. If its process can't be
// killed, run returns anyway, and no further process starts before that one has exited.
func (t *tool) run(ctx context.Context, args ...string) (string, error) {
	if !t.idle() {
		return "", fmt.Errorf("%w: an earlier nvidia-smi process can't be killed", errNoAnswer)
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
