package validator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
)

// Builtin returns the in-process equivalent of a validator command that runs this
// program, or nil if there is none. Like a validator, it reads documents and writes
// errors; it stops when ctx is done.
type Builtin func(argv []string) func(ctx context.Context, documents io.Reader, faults io.Writer) error

// builtinLimit is the size of a document or file above which a check runs in a separate
// process with limited memory, because the errors in a long document can take forty times
// its size.
const builtinLimit = 1 << 20

// isSmall reports whether the documents and files of a call are within builtinLimit.
func (c *call) isSmall() bool {
	return c.longest <= builtinLimit && !slices.ContainsFunc(c.files, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > builtinLimit
	})
}

// builtinOf returns a function that makes the call in this process, or nil if it needs a
// separate process.
func (p *Pool) builtinOf(c call) runFunc {
	if p.options.Builtin == nil || !c.isSmall() {
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
		// A panic in the engine ends only this check, as in a separate process.
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
