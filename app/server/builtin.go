package server

import (
	"context"
	"io"
	"slices"

	"molrun/app/engine/cgidp"
)

// builtin returns the check of settings that a command of this program makes, to be
// made in this process, which saves starting one. It is nil for every other command.
func (s *service) builtin(argv []string) func(ctx context.Context, documents io.Reader, faults io.Writer) error {
	const words = 4
	if len(argv) < words || !slices.Equal(argv[:words], []string{s.program, "engine", "cg-idp", "--validate"}) {
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
		return cgidp.Validate(ctx, fasta, documents, faults)
	}
}
