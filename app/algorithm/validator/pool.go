package validator

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"molrun/app/base/fault"
	"molrun/app/base/limit"
)

// PoolOptions configure a Pool. Zero values select the defaults.
type PoolOptions struct {
	Concurrency int           // concurrent programs, all but one of which a single user can run; default: number of CPUs, at least 2
	Wait        time.Duration // maximum wait for a slot; default: one minute
	Timeout     time.Duration // time limit for a check of up to 100 documents; default: five seconds
	TempDir     TempDir       // creates working directories; default: the system temporary directory
	Confine     Confine       // limits programs; default: no limits
	Builtin     Builtin       // checks to run in this process; default: none
}

// Pool runs the validators of all algorithms, with bounded concurrency.
type Pool struct {
	options  PoolOptions
	programs *limit.Slots // for programs; fair among users
	builtin  *limit.Slots // for checks in this process, which slow programs must not delay
}

// NewPool returns a pool. Close is the only cleanup it needs.
func NewPool(o PoolOptions) *Pool {
	// One user's checks leave a CPU for other requests.
	enough := max(2, runtime.NumCPU())
	if o.Concurrency <= 0 {
		o.Concurrency = enough
	}
	if o.Wait <= 0 {
		o.Wait = time.Minute
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.TempDir == nil {
		o.TempDir = systemTempDir
	}
	if o.Confine == nil {
		o.Confine = unconfined
	}
	return &Pool{options: o, programs: newSlots(o.Concurrency), builtin: newSlots(enough)}
}

// newSlots returns slots for n concurrent checks. No user can take the last one, so the
// slow checks of one user never block another user's.
func newSlots(n int) *limit.Slots { return &limit.Slots{All: n, Each: max(1, n-1)} }

var (
	errBusy     = fault.Errorf(fault.Unavailable, "too many settings are being checked; send the request again in a few seconds")
	errStopping = fault.Errorf(fault.Unavailable, "the service is stopping; send the request again after it has restarted")
)

// takeSlot waits for a slot until ctx is done, the wait times out, or the service stops.
func (p *Pool) takeSlot(ctx context.Context, slots *limit.Slots, user string) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.Wait, errBusy)
	defer cancel()
	return slots.Take(ctx, user)
}

// Close rejects waiting and later checks so that the service can stop. Running checks
// continue.
func (p *Pool) Close() {
	p.programs.Close(errStopping)
	p.builtin.Close(errStopping)
}

// AskProgram runs the program on each question and returns the errors that it found.
// Paths are relative to the settings. Users share the pool fairly. The returned error is
// not an error in the settings; it means that the program could not be run.
func (p *Pool) AskProgram(ctx context.Context, user string, program Program, questions []Input) ([][]fault.Field, error) {
	faults := make([][]fault.Field, len(questions))
	calls := program.calls(questions)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work := make(chan call)
	var first error
	var once sync.Once
	var workers sync.WaitGroup
	for range min(p.options.Concurrency, len(calls)) {
		workers.Go(func() {
			for call := range work {
				answers, err := p.makeCall(ctx, user, program, call)
				if err != nil {
					once.Do(func() { first = err; stop() })
					continue
				}
				for i, question := range call.questions {
					faults[question] = answers[i]
				}
			}
		})
	}
	for _, call := range calls {
		work <- call
	}
	close(work)
	workers.Wait()
	if first != nil {
		return nil, first
	}
	return faults, nil
}

// CheckInProcess runs a check in this process once the user gets a slot. check must
// return when its context is done.
func (p *Pool) CheckInProcess(ctx context.Context, user string, check func(context.Context) error) (err error) {
	limit.WithoutSlot(ctx, func() { err = p.checkInSlot(ctx, user, check) })
	return err
}

func (p *Pool) checkInSlot(ctx context.Context, user string, check func(context.Context) error) error {
	release, err := p.takeSlot(ctx, p.builtin, user)
	if err != nil {
		return err
	}
	defer release()
	timed, cancel := context.WithTimeout(ctx, maxTimeLimit)
	defer cancel()
	err = check(timed)
	if timed.Err() != nil && ctx.Err() == nil {
		return fault.Errorf(fault.Unavailable, "reading a file took longer than %v; try again later", maxTimeLimit)
	}
	return err
}

// makeCall makes one call once the user gets a slot.
func (p *Pool) makeCall(ctx context.Context, user string, program Program, c call) (answers [][]fault.Field, err error) {
	limit.WithoutSlot(ctx, func() { answers, err = p.askInSlot(ctx, user, program, c) })
	return answers, err
}

func (p *Pool) askInSlot(ctx context.Context, user string, program Program, c call) ([][]fault.Field, error) {
	run, slots := p.builtinOf(c), p.builtin
	if run == nil {
		run, slots = p.process(program.Sandbox), p.programs
	}
	release, err := p.takeSlot(ctx, slots, user)
	if err != nil {
		return nil, err
	}
	defer release()
	return program.runCall(ctx, c, c.limit(p.options.Timeout), run)
}

// runFunc makes a call before ctx expires and returns the output.
type runFunc func(ctx context.Context, c call) (output []byte, err error)

// runCall makes a call. Its error names the algorithm, in the cause for the log and in
// the message for the caller.
func (p *Program) runCall(ctx context.Context, c call, limit time.Duration, run runFunc) ([][]fault.Field, error) {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	output, err := run(timed, c)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	fail := func(code fault.Code, message string) error {
		return &fault.Error{Code: code, Message: message, Err: fmt.Errorf("validator of %s %s: %w", p.Type, p.Version, err)}
	}
	if timed.Err() != nil {
		err = fmt.Errorf("timed out after %v", limit)
		return nil, fail(fault.Unavailable, fmt.Sprintf("checking the settings of %s took longer than %v; try again later", p.Type, limit))
	}
	answers, parseErr := parseAnswers(output, len(c.questions), p.Many)
	unread := errors.Is(err, exec.ErrWaitDelay) // the program exited, but its output could not be read completely in time
	switch {
	case unread && parseErr != nil:
		return nil, fail(fault.Unavailable, fmt.Sprintf("the program that checks the settings of %s did not answer in time; "+
			"try again later, and ask an administrator if this persists", p.Type))
	case err != nil && !unread && (parseErr != nil || !anyFault(answers)):
		return nil, fail(fault.Unavailable, fmt.Sprintf("the program that checks the settings of %s failed; ask an administrator", p.Type))
	case parseErr != nil:
		err = parseErr
		return nil, fail(fault.Internal, fmt.Sprintf("the program that checks the settings of %s returned invalid output; ask an administrator", p.Type))
	}
	return answers, nil
}

func anyFault(answers [][]fault.Field) bool {
	return slices.ContainsFunc(answers, func(f []fault.Field) bool { return len(f) > 0 })
}
