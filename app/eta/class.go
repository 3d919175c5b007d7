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
	Expected      float64 // seconds that a run is said to take; 0: nothing is said
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
	if c.Expected > 0 {
		name += expectedMark + strconv.FormatFloat(c.Expected, 'g', -1, 64)
	}
	return name
}

// expectedMark precedes the seconds at the end of a class's name.
const expectedMark = " ~"

// expectedOf returns the seconds that a run of a class is said to take, 0 if nothing is said.
func expectedOf(class string) float64 {
	i := strings.LastIndex(class, expectedMark)
	if i < 0 {
		return 0
	}
	seconds, err := strconv.ParseFloat(class[i+len(expectedMark):], 64)
	if err != nil {
		return 0
	}
	return seconds
}
