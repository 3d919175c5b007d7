package process

import "bytes"

// maxOutput bounds what an Output keeps.
const maxOutput = 1 << 20

// Output keeps the beginning of what a program prints. It does not embed its buffer, whose
// ReadFrom would have io.Copy pass by the bound.
type Output struct{ kept bytes.Buffer }

func (o *Output) Write(p []byte) (int, error) {
	o.kept.Write(p[:min(len(p), maxOutput-o.kept.Len())])
	return len(p), nil
}

// Bytes returns what was kept, until the next Write.
func (o *Output) Bytes() []byte { return o.kept.Bytes() }

// String returns what was kept.
func (o *Output) String() string { return o.kept.String() }
