package cgidp

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// record is one sequence of a FASTA text.
type record struct {
	id      string // first word of the header, made fit for a file name; or ""
	letters string // upper case, without white space and one trailing "*"
}

// parseFASTA splits a text into records. A text without headers is one sequence.
// It accepts any text: the letters are checked afterwards.
func parseFASTA(text []byte) []record {
	var records []record
	var letters strings.Builder
	id, open := "", false
	end := func() {
		if open {
			records = append(records, record{id, cleanSequence(letters.String())})
		}
		letters.Reset()
	}
	for line := range bytes.SplitSeq(withUnixLines(text), []byte("\n")) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == ';': // ';' begins a comment in old files
		case line[0] == '>':
			end()
			id, open = recordID(string(line[1:])), true
		default:
			open = true
			letters.Write(line)
		}
	}
	end()
	return records
}

func withUnixLines(text []byte) []byte {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
}

// recordID takes the first word of a header. Characters that a file name should
// not have, as in sp|P37840|SYUA_HUMAN, become "_".
func recordID(header string) string {
	words := strings.Fields(header)
	if len(words) == 0 {
		return ""
	}
	id := strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && isNameByte(byte(c)) {
			return c
		}
		return '_'
	}, words[0])
	return id[:min(len(id), maxNameLength)]
}

// cleanSequence drops white space and one trailing "*", the stop sign of
// translated sequences.
func cleanSequence(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return -1
		}
		return unicode.ToUpper(c)
	}, text)
	return strings.TrimSuffix(text, "*")
}

// hints say what to do about characters that are often met in sequences.
var hints = map[rune]string{
	'B': "B stands for D or N: choose one",
	'J': "J stands for I or L: choose one",
	'O': "pyrrolysine is not part of the model: use K",
	'U': "selenocysteine is not part of the model: use C",
	'X': "X stands for an unknown residue: fill it in or cut it out",
	'Z': "Z stands for E or Q: choose one",
	'-': "remove the gaps of the alignment",
	'.': "remove the gaps of the alignment",
	'*': "a stop within the sequence: check the reading frame, or cut the sequence there",
	'>': "begin each FASTA header on a line of its own",
}

// hint says what to do about one character that is not an amino acid.
func hint(c rune) string {
	if text, ok := hints[c]; ok {
		return text
	}
	if unicode.IsDigit(c) {
		return "remove numbers from the sequence"
	}
	return "use the letters " + residueLetters
}
