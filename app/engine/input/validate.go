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

// MaxFASTA is the largest FASTA text that is read, in bytes: enough for 64 chains of 2000
// residues with long headers and much white space.
const MaxFASTA = 4 << 20

// Check returns the faults of settings; fasta is the content of the file that they name, nil
// if there is none.
type Check func(settings, fasta []byte) []fault.Field

// Validate reads settings, one JSON document after the other, and writes the faults
// of each as a JSON array on a line, until ctx ends. FASTA is the path of the FASTA
// file that all of them use, "" for none.
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

// ReadFASTA returns the text of a FASTA file, nil if the path is "". Of a file that is too
// long it returns enough to notice.
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
		text = []byte{} // an empty file is still a file
	}
	return text, err
}
