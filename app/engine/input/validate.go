package input

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"molrun/app/base/fault"
)

// MaxFASTA is the maximum size of a FASTA file in bytes: enough for 64 chains of 2000
// residues with long headers and much white space.
const MaxFASTA = 4 << 20

// Check returns the validation errors of settings. fasta is the content of the FASTA
// file, or nil if there is none.
type Check func(settings, fasta []byte) []fault.Field

// Validate reads settings as a stream of JSON documents and writes the errors of each as
// a JSON array on one line, until ctx is canceled or the stream ends. fasta is the path
// of the FASTA file that all of them use, or "" for none.
func Validate(ctx context.Context, check Check, fasta string, settings io.Reader, faults io.Writer) error {
	text, err := ReadFASTA(fasta)
	if err != nil {
		return err
	}
	documents, answers := json.NewDecoder(settings), json.NewEncoder(faults)
	for ctx.Err() == nil {
		var document json.RawMessage
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read settings: %w", err)
		}
		found := check(document, text)
		if found == nil {
			found = []fault.Field{}
		}
		if err := answers.Encode(found); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ReadFASTA returns the text of a FASTA file, or nil if the path is "". It reads at most
// one byte more than MaxFASTA, so that an oversized file is detected.
func ReadFASTA(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the FASTA file: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxFASTA+1))
	if text == nil {
		text = []byte{} // distinguish an empty file from no file
	}
	return text, err
}
