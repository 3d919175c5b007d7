package process

import "bytes"

// maxOutput limits how much an Output keeps.
const maxOutput = 1 << 20

// Output keeps the beginning of a program's output. It does not embed its buffer, because
// io.Copy would use the buffer's ReadFrom and bypass the limit.
type Output struct{ kept bytes.Buffer }

func (o *Output) Write(p []byte) (int, error) {
	o.kept.Write(p[:min(len(p), maxOutput-o.kept.Len())])
	return len(p), nil
}

// Bytes returns the kept output, valid until the next Write.
func (o *Output) Bytes() []byte { return o.kept.Bytes() }

// String returns the kept output.
func (o *Output) String() string { return o.kept.String() }
