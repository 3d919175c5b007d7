package eta

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	return name
}
