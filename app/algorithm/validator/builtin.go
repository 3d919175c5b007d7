package validator

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// Builtin returns the check that a command of this program would make, to be made
// in this process; nil if that command makes none. The check reads documents and
// writes faults as a validator does, until ctx ends.
type Builtin func(argv []string) func(ctx context.Context, documents io.Reader, faults io.Writer) error

// builtinOf returns how to make a call in this process, nil if it needs another.
func (p *Pool) builtinOf(c call) runFunc {
	if p.options.Builtin == nil {
		return nil
	}
	check := p.options.Builtin(c.argv)
	if check == nil {
		return nil
	}
	return func(ctx context.Context, c call) (output []byte, err error) {
		ctx, tooMuch := context.WithCancel(ctx)
		defer tooMuch()
		answers := &boundedBuffer{most: outputLimit, full: tooMuch}
		// A mistake of the engine ends this check, as it would end its process.
		defer func() {
			if p := recover(); p != nil {
				output, err = nil, fmt.Errorf("panic: %v", p)
			}
		}()
		err = check(ctx, bytes.NewReader(c.input), answers)
		if answers.overflowed() {
			return nil, errTooMuch
		}
		return answers.bytes(), err
	}
}
