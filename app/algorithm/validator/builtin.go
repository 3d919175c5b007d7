package validator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
)

// Builtin returns the check that a command of this program would make, to be made
// in this process; nil if that command makes none. The check reads documents and
// writes faults as a validator does, until ctx ends.
type Builtin func(argv []string) func(ctx context.Context, documents io.Reader, faults io.Writer) error

// builtinLimit is the length of a document or file above which a check gets a
// process of its own after all, whose memory is limited: the faults of a long text
// may take forty times its length.
const builtinLimit = 1 << 20

// isSmall reports whether a check of these documents and files is small.
func (c *call) isSmall() bool {
	return c.longest <= builtinLimit && !slices.ContainsFunc(c.files, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > builtinLimit
	})
}

// builtinOf returns how to make a call in this process, nil if it needs another.
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
		// A panic of the engine ends this check, as it would end its process.
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
