package eta

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Work is what is known of a job's run time before it runs.
type Work struct {
	Class string  // the name of its class, "" if it has none
	Size  float64 // as its algorithm file computes it; 0: unknown
}

// Class says which runs are comparable: of one program, on machines of one kind, with
// sizes by one formula.
type Class struct {
	Type, Version string
	Executor      string
	Where         []string // on a cluster: the partition and the like
	GPUs          int
	Formula       string
	Said          Said
}

// Said is how long a run is said to take until some have run: at most one of the two is not 0.
type Said struct {
	Seconds float64
	PerSize float64 // seconds of a run of size 1
}

// Name returns the class in short.
func (c Class) Name() string {
	name := strings.Join([]string{c.Type, c.Version, c.Executor}, " ")
	for _, part := range c.Where {
		if part != "" {
			name += "/" + part
		}
	}
	if c.GPUs > 0 {
		name += fmt.Sprintf(" %dgpu", c.GPUs)
	}
	if c.Formula != "" {
		sum := sha256.Sum256([]byte(c.Formula))
		name += " " + hex.EncodeToString(sum[:4])
	}
	return name + c.Said.mark()
}

// saidMark precedes what is said at the end of a class's name, and perSizeMark follows seconds of a run
// of size 1.
const (
	saidMark    = " ~"
	perSizeMark = "/size"
)

func (s Said) mark() string {
	switch {
	case s.Seconds > 0:
		return saidMark + strconv.FormatFloat(s.Seconds, 'g', -1, 64)
	case s.PerSize > 0:
		return saidMark + strconv.FormatFloat(s.PerSize, 'g', -1, 64) + perSizeMark
	}
	return ""
}

// saidOf returns what is said of the runs of a class.
func saidOf(class string) Said {
	i := strings.LastIndex(class, saidMark)
	if i < 0 {
		return Said{}
	}
	number, perSize := strings.CutSuffix(class[i+len(saidMark):], perSizeMark)
	seconds, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil:
		return Said{}
	case perSize:
		return Said{PerSize: seconds}
	}
	return Said{Seconds: seconds}
}

// of returns how many seconds a run of a size is said to take, 0 if nothing is said.
func (s Said) of(size float64) float64 {
	if s.PerSize > 0 {
		return s.PerSize * max(0, size)
	}
	return s.Seconds
}
