package eta

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Work is what is known about a job's run time before it runs.
type Work struct {
	Class string  // name of the class, "" if none
	Size  float64 // computed by the algorithm file; 0 means unknown
}

// Class identifies comparable runs: of the same program, on machines of the same kind,
// with sizes computed by the same formula.
type Class struct {
	Type, Version string
	Executor      string
	Where         []string // on a cluster: partition, constraint
	GPUs          int
	Formula       string
	Declared      Declared
}

// Declared is the run time declared in an algorithm file, used until there are enough
// past runs. At most one of the two fields is nonzero.
type Declared struct {
	Seconds float64
	PerSize float64 // seconds for a run of size 1
}

// Name returns a compact name that identifies the class.
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
	return name + c.Declared.suffix()
}

// declaredMark precedes the declared run time at the end of a class's name, and
// perSizeMark follows the seconds for a run of size 1.
const (
	declaredMark = " ~"
	perSizeMark  = "/size"
)

func (s Declared) suffix() string {
	switch {
	case s.Seconds > 0:
		return declaredMark + strconv.FormatFloat(s.Seconds, 'g', -1, 64)
	case s.PerSize > 0:
		return declaredMark + strconv.FormatFloat(s.PerSize, 'g', -1, 64) + perSizeMark
	}
	return ""
}

// declaredOf returns the declared run time in the name of a class.
func declaredOf(class string) Declared {
	i := strings.LastIndex(class, declaredMark)
	if i < 0 {
		return Declared{}
	}
	number, perSize := strings.CutSuffix(class[i+len(declaredMark):], perSizeMark)
	seconds, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil:
		return Declared{}
	case perSize:
		return Declared{PerSize: seconds}
	}
	return Declared{Seconds: seconds}
}

// secondsFor returns the declared run time for a size, or 0 if none is declared.
func (s Declared) secondsFor(size float64) float64 {
	if s.PerSize > 0 {
		return s.PerSize * max(0, size)
	}
	return s.Seconds
}
