package simulation

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"syscall"
	"time"

	"molrun/app"
	"molrun/app/fault"
)

// fate is how a task goes.
type fate struct {
	waits     time.Duration // from Start to its process
	runs      time.Duration // unless it is stopped or hits its limit
	cause     app.Cause     // "": it is lost
	stopTakes time.Duration // from Stop to its end
	lag       time.Duration // from its end to the news of it
	vanishes  bool          // Start gives no error, and yet nothing comes to life
	refuses   error         // of Start
	refusals  int           // how often
}

var (
	causes = []app.Cause{
		app.CauseDone, app.CauseDone, app.CauseDone, app.CauseDone, app.CauseDone, app.CauseExit, app.CauseExit,
		app.CauseSignal, app.CauseMemory, app.CauseCannotStart, app.CauseInterrupted, "", "",
	}
	refusals = []error{syscall.ENOSPC, syscall.EAGAIN, fault.Unavailable, errors.New("the machine refuses")}
)

// fateOf gives the fate of an attempt, whatever happened before.
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
	switch rng.IntN(10) {
	case 0:
		f.runs = 0
	case 1:
		f.runs = time.Hour // more than its limit
	case 2:
		f.waits = seconds(rng, 5)
	case 3:
		f.lag = seconds(rng, 5)
	case 4:
		f.refuses, f.refusals = refusals[rng.IntN(len(refusals))], 1+rng.IntN(3)
	}
	return f
}

// seconds gives a random time, on average as many seconds as said. Milliseconds
// make it unlikely that two things happen at the same moment by accident.
func seconds(rng *rand.Rand, mean float64) time.Duration {
	return time.Duration(rng.ExpFloat64()*mean*1000) * time.Millisecond
}
