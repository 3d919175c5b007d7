package simulation

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
)

// fate is the script that a task follows.
type fate struct {
	waits     time.Duration // time from Start to the start of the process
	runs      time.Duration // runtime, unless the task is stopped or reaches its limit
	cause     app.Cause     // cause of the end; "" means that the task is lost
	stopTakes time.Duration // time from Stop to the end
	lag       time.Duration // time from the end until Status reports it
	vanishes  bool          // Start returns no error, but no task exists
	refuses   error         // the error that Start returns, if any
	refusals  int           // how many times Start returns it
}

var (
	causes = []app.Cause{
		app.CauseDone, app.CauseDone, app.CauseDone, app.CauseDone, app.CauseDone, app.CauseExit, app.CauseExit,
		app.CauseSignal, app.CauseMemory, app.CauseCannotStart, app.CauseInterrupted, "", "",
	}
	refusals = []error{syscall.ENOSPC, syscall.EAGAIN, fault.Unavailable, errors.New("the machine refuses")}
)

// fateOf returns the fate of an attempt. It depends only on the arguments, not on earlier
// events.
func fateOf(seed uint64, name string, attempt int) fate {
	h := fnv.New64a()
	h.Write([]byte(name))
	rng := rand.New(rand.NewPCG(seed^h.Sum64(), uint64(attempt)))
	f := fate{
		runs:      seconds(rng, 20),
		cause:     causes[rng.IntN(len(causes))],
		stopTakes: time.Duration(rng.IntN(9000)) * time.Millisecond,
		vanishes:  rng.IntN(20) == 0,
	}
	if isShortRow(name) {
		f.shorten(rng)
	}
	switch rng.IntN(10) {
	case 0:
		f.runs = 0
	case 1:
		if !isShortRow(name) || rng.IntN(4) == 0 {
			f.runs = time.Hour // exceeds its limit
		}
	case 2:
		f.waits = seconds(rng, 5)
	case 3:
		f.lag = seconds(rng, 5)
	case 4:
		f.refuses, f.refusals = refusals[rng.IntN(len(refusals))], 1+rng.IntN(3)
	}
	return f
}

// isShortRow reports whether a job belongs to a batch of short jobs, judging by its name.
func isShortRow(name string) bool { return strings.Contains(name, "/rows") }

// shorten turns a fate into that of a short job. Most short jobs take about a second, and
// few are lost.
func (f *fate) shorten(rng *rand.Rand) {
	f.runs = seconds(rng, 1)
	if rng.IntN(30) == 0 {
		f.runs = seconds(rng, 8)
	}
	if f.cause == "" || f.cause == app.CauseInterrupted {
		f.cause = []app.Cause{"", app.CauseInterrupted, app.CauseDone, app.CauseDone, app.CauseDone, app.CauseDone}[rng.IntN(6)]
	}
}

// seconds returns a random duration with the given mean. It has millisecond resolution,
// so that two events rarely coincide.
func seconds(rng *rand.Rand, mean float64) time.Duration {
	return time.Duration(rng.ExpFloat64()*mean*1000) * time.Millisecond
}
