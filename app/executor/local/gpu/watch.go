// Package gpu watches the NVIDIA GPUs of this machine: which ones exist, which can be
// assigned to jobs, and what is wrong with the others. It queries nvidia-smi, which can
// be slow, fail or hang if a driver or a card is broken; all waits for it are bounded.
package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
)

const (
	// interval is the pause between checks.
	interval = time.Minute
	// callBound bounds one call of nvidia-smi. Without persistence mode the driver
	// initializes every card for each call, which takes seconds per card.
	callBound = time.Minute
	// closeBound is how long Close waits for a process that was killed.
	closeBound = 3 * time.Second
)

// Options configures a Watcher.
type Options struct {
	Selected []string // GPUs that can be assigned to jobs, by index or UUID; nil means all
	Program  string   // nvidia-smi; "" means the one on PATH, if any
	Log      zerolog.Logger

	Interval  time.Duration // 0 means a minute
	CallBound time.Duration // for one call of nvidia-smi; 0 means a minute
	Root      string        // parent of /proc; "" means /
}

// State is the known state of the GPUs.
type State struct {
	GPUs     []string          // assignable to jobs, named as in CUDA_VISIBLE_DEVICES
	Cards    map[string]string // UUID of the card for each GPU that is an instance (MIG)
	Faulty   []app.FaultyGPU
	Unknown  bool     // nvidia-smi has not responded yet
	Notes    []string // other messages of nvidia-smi
	Smallest int64    // memory of the smallest GPU in bytes; 0 if unknown
}

// Watcher watches the GPUs. It must be closed.
type Watcher struct {
	options Options
	tool    *tool // nil if there is none, and the state is fixed
	changed chan struct{}
	life    context.Context // context of checks
	end     context.CancelFunc

	mu      sync.Mutex
	current chan struct{} // closed at the end of the current check; nil if there is none
	looks   int           // number of checks begun
	closed  bool
	err     error // error of the last check

	devices   []*device
	processes []program
	notes     []string
	answered  bool
	lookedAt  time.Time // when the check with these results began

	holds   bool // held has been set
	held    map[string]bool
	freedAt map[string]time.Time

	state  State
	faults map[string]app.GPUFault // as last logged
}

// New returns a Watcher, which has not checked the GPUs yet.
func New(o Options) *Watcher {
	o.Interval, o.CallBound, o.Root = cmp.Or(o.Interval, interval), cmp.Or(o.CallBound, callBound), cmp.Or(o.Root, "/")
	w := &Watcher{
		options: o, changed: make(chan struct{}, 1),
		held: map[string]bool{}, freedAt: map[string]time.Time{}, faults: map[string]app.GPUFault{},
	}
	w.life, w.end = context.WithCancel(context.Background())
	if o.Program == "" {
		o.Program, _ = exec.LookPath("nvidia-smi")
	}
	if o.Program == "" || o.Selected != nil && len(o.Selected) == 0 {
		w.state.GPUs = o.Selected
		return w
	}
	w.tool = &tool{path: o.Program, root: o.Root, bound: o.CallBound}
	w.state.Unknown = true
	return w
}

// Present reports whether there is an nvidia-smi to query.
func (w *Watcher) Present() bool { return w.tool != nil }

// State returns the current state.
func (w *Watcher) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Changed returns a channel that receives after the State has changed.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Run checks the GPUs after each interval until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.options.Interval):
		}
		_ = w.Check(ctx) // the state includes the error
	}
}

// Check checks the GPUs, and returns when the check is complete, or when ctx ends; the
// check then continues in the background. An error means that nothing is known.
func (w *Watcher) Check(ctx context.Context) error {
	w.mu.Lock()
	before := w.looks
	w.mu.Unlock()
	for {
		done, look := w.begin()
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if look != before { // it began after this call
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.err
		}
	}
}

// begin begins a check unless one is running, and returns a channel that is closed at its
// end, and its number.
func (w *Watcher) begin() (done <-chan struct{}, look int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil {
		return w.current, w.looks
	}
	ended := make(chan struct{})
	w.looks++
	if w.closed || w.tool == nil {
		close(ended)
		return ended, w.looks
	}
	w.current = ended
	known := make([]string, 0, len(w.devices))
	for _, d := range w.devices {
		known = append(known, d.bus)
	}
	go func() { // Close waits for it
		w.look(known)
		close(ended)
	}()
	return ended, w.looks
}

func (w *Watcher) look(known []string) {
	begin := time.Now()
	l, err := w.tool.look(w.life, known)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current, w.err = nil, err
	if w.closed {
		return
	}
	w.lookedAt = begin
	switch {
	case errors.Is(err, errNotRun):
		w.notes = []string{err.Error()} // the previous state is kept
	case err != nil:
		w.recordNoAnswer(err)
	default:
		w.answered = true
		w.notes, w.processes = l.notes, l.processes
		w.update(l)
	}
	w.publish()
}

// Close ends a running check.
func (w *Watcher) Close() error {
	w.mu.Lock()
	w.closed = true
	current := w.current
	w.mu.Unlock()
	w.end()
	if current == nil {
		return nil
	}
	select {
	case <-current:
		return nil
	case <-time.After(closeBound):
		return errors.New("a process of nvidia-smi can't be killed")
	}
}

// Hold sets which GPUs jobs hold. These are not checked for other programs.
func (w *Watcher) Hold(names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for name := range w.held {
		if !slices.Contains(names, name) {
			delete(w.held, name)
			w.freedAt[name] = now
		}
	}
	for _, name := range names {
		w.held[name] = true
	}
	w.holds = true
	w.publish()
}

// publish computes the state, logs changes, and signals them.
func (w *Watcher) publish() {
	if w.tool == nil {
		return
	}
	old := w.state
	w.state = w.makeState()
	w.log(old)
	if slices.Equal(old.GPUs, w.state.GPUs) && old.Unknown == w.state.Unknown && slices.EqualFunc(old.Faulty, w.state.Faulty, sameFault) {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func sameFault(a, b app.FaultyGPU) bool { return a.Name == b.Name && a.Fault == b.Fault }

func (w *Watcher) makeState() State {
	s := State{Unknown: !w.answered, Notes: w.notes, Cards: map[string]string{}}
	for _, d := range w.devices {
		if !w.selects(d) {
			continue
		}
		if d.memory > 0 && (s.Smallest == 0 || d.memory < s.Smallest) {
			s.Smallest = d.memory
		}
		if fault, text := w.faultOf(d); fault != "" {
			s.Faulty = append(s.Faulty, app.FaultyGPU{Name: d.name, Fault: fault, Text: text})
			continue
		}
		s.GPUs = append(s.GPUs, d.name)
		if d.name != d.card {
			s.Cards[d.name] = d.card
		}
	}
	for _, name := range w.options.Selected {
		if !slices.ContainsFunc(w.devices, func(d *device) bool { return d.isCalled(name) }) {
			fault := app.FaultyGPU{Name: name, Fault: app.GPULost, Text: "is not listed by nvidia-smi"}
			if !w.answered {
				fault.Fault, fault.Text = app.GPUUnknown, "is not known yet"
			}
			s.Faulty = append(s.Faulty, fault)
		}
	}
	return s
}

// selects reports whether the configuration lets jobs use a device.
func (w *Watcher) selects(d *device) bool {
	return w.options.Selected == nil || slices.ContainsFunc(w.options.Selected, d.isCalled)
}

// log logs each change once.
func (w *Watcher) log(old State) {
	for _, g := range w.state.Faulty {
		if w.faults[g.Name] != g.Fault {
			w.faults[g.Name] = g.Fault
			w.options.Log.Warn().Str("gpu", g.Name).Str("reason", g.Text).Msg("GPU is faulty, so jobs can't use it")
		}
	}
	for name := range w.faults {
		if slices.ContainsFunc(w.state.Faulty, func(g app.FaultyGPU) bool { return g.Name == name }) {
			continue
		}
		delete(w.faults, name)
		if slices.Contains(w.state.GPUs, name) {
			w.options.Log.Info().Str("gpu", name).Msg("GPU is used again")
		}
	}
	if notes := strings.Join(w.state.Notes, "; "); notes != "" && notes != strings.Join(old.Notes, "; ") {
		w.options.Log.Warn().Str("reason", notes).Msg("nvidia-smi reports a problem")
	}
}

// AddTo sets the GPUs of a capacity.
func (s State) AddTo(c *app.Capacity) {
	c.GPUs, c.Cards, c.FaultyGPUs, c.GPUsUnknown = s.GPUs, s.Cards, s.Faulty, s.Unknown
}

// Count returns how many GPUs there would be if none were faulty, or a very large number
// while that is unknown.
func (s State) Count() int {
	if s.Unknown {
		return math.MaxInt32
	}
	var c app.Capacity
	s.AddTo(&c)
	return c.ExpectedGPUs()
}

// Summary describes the faults, and how many GPUs are in use; "" if there are none.
func (s State) Summary() string {
	var all []string
	for _, g := range s.Faulty {
		all = append(all, g.Name+" "+g.Text)
	}
	if len(s.Notes) > 0 {
		all = append(all, "nvidia-smi: "+strings.Join(s.Notes, "; "))
	}
	if s.Unknown && len(all) == 0 {
		all = append(all, errNoAnswer.Error())
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("%d can be used; %s", len(s.GPUs), strings.Join(all, "; "))
}
