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

// PoolOptions configure a Pool. Zero values take the defaults named here.
type PoolOptions struct {
	AtOnce  int           // programs that run at once, as many as there are CPUs and at least two; a user gets all but one
	Wait    time.Duration // how long a check may wait for its turn, one minute
	Timeout time.Duration // how long a check of up to 100 documents may take, five seconds
	TempDir TempDir       // a directory of the system's
	Confine Confine       // nothing is limited
	Builtin Builtin       // none
}

// Pool runs the programs of all algorithms, a bounded number at once.
type Pool struct {
	options  PoolOptions
	programs *limit.Slots // by user
	builtin  *limit.Slots // checks in this process, which slow programs do not hold up
}

// NewPool returns a pool that needs no end other than Close.
func NewPool(o PoolOptions) *Pool {
	// One user's checks leave a CPU for the answers to others.
	enough := max(2, runtime.NumCPU())
	if o.AtOnce <= 0 {
		o.AtOnce = enough
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
	return &Pool{options: o, programs: newSlots(o.AtOnce), builtin: newSlots(enough)}
}

// newSlots returns slots for a number of checks at once. No user takes the last one, so that the slow
// checks of one alone never hold up another's.
func newSlots(n int) *limit.Slots { return &limit.Slots{All: n, Each: max(1, n-1)} }

var (
	errBusy     = fault.Errorf(fault.Unavailable, "too many settings are being checked; send the request again in a few seconds")
	errStopping = fault.Errorf(fault.Unavailable, "the service is stopping; send the request again when it is back")
)

// takeSlot waits for a slot until ctx ends, the wait is too long or the service stops.
func (p *Pool) takeSlot(ctx context.Context, slots *limit.Slots, user string) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.options.Wait, errBusy)
	defer cancel()
	return slots.Take(ctx, user)
}

// Close refuses the checks that wait and those that come later, so that the
// service can stop. Running checks continue.
func (p *Pool) Close() {
	p.programs.Close(errStopping)
	p.builtin.Close(errStopping)
}

// AskProgram returns the faults that a program finds, a list for each question; paths
// begin below the settings. Users share the pool fairly. An error says that the
// program could not be asked, which is no fault of the settings.
func (p *Pool) AskProgram(ctx context.Context, user string, program Program, questions []Question) ([][]fault.Field, error) {
	faults := make([][]fault.Field, len(questions))
	calls := program.calls(questions)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work := make(chan call)
	var first error
	var once sync.Once
	var workers sync.WaitGroup
	for range min(p.options.AtOnce, len(calls)) {
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

// CheckInProcess has a file read in this process when it is the user's turn. check ends with its
// context.
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

// makeCall makes one call when it is the user's turn.
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

// runFunc makes a call within the time of ctx and returns the output.
type runFunc func(ctx context.Context, c call) (output []byte, err error)

// runCall makes a call. Its error names the algorithm, as the cause for the log and
// as a sentence for the caller.
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
		err = fmt.Errorf("no answer after %v", limit)
		return nil, fail(fault.Unavailable, fmt.Sprintf("checking the settings of %s took longer than %v; try again later", p.Type, limit))
	}
	answers, parseErr := parseAnswers(output, len(c.questions), p.Many)
	unread := errors.Is(err, exec.ErrWaitDelay) // it has ended, and its output was not read to the end in time
	switch {
	case unread && parseErr != nil:
		return nil, fail(fault.Unavailable, fmt.Sprintf("the program that checks the settings of %s did not answer in time; "+
			"try again later, and ask an administrator if that stays so", p.Type))
	case err != nil && !unread && (parseErr != nil || !anyFault(answers)):
		return nil, fail(fault.Unavailable, fmt.Sprintf("the program that checks the settings of %s failed; ask an administrator", p.Type))
	case parseErr != nil:
		err = parseErr
		return nil, fail(fault.Internal, fmt.Sprintf("the program that checks the settings of %s gave no usable answer; ask an administrator", p.Type))
	}
	return answers, nil
}

func anyFault(answers [][]fault.Field) bool {
	return slices.ContainsFunc(answers, func(f []fault.Field) bool { return len(f) > 0 })
}
