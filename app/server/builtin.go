package server

import (
	"context"
	"io"
	"slices"

	"molrun/app/engine/cgidp"
	"molrun/app/engine/condensate"
	"molrun/app/engine/input"
)

// checks holds the settings checks of the built-in engines.
var checks = map[string]input.Check{"cg-idp": cgidp.Check, "cg-condensate": condensate.Check}

// builtin returns the settings check that a command of this program performs, to be run
// in this process instead of starting a new one. It returns nil for every other command.
func (s *service) builtin(argv []string) func(ctx context.Context, documents io.Reader, faults io.Writer) error {
	const words = 4
	if len(argv) < words {
		return nil
	}
	check := checks[argv[2]]
	if check == nil || !slices.Equal(argv[:words], []string{s.program, "engine", argv[2], "--validate"}) {
		return nil
	}
	fasta := ""
	switch options := argv[words:]; {
	case len(options) == 2 && options[0] == "--fasta":
		fasta = options[1]
	case len(options) > 0:
		return nil
	}
	return func(ctx context.Context, documents io.Reader, faults io.Writer) error {
		return input.Validate(ctx, check, fasta, documents, faults)
	}
}
