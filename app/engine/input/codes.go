package input

import (
	"strings"

	"molrun/app/engine/md"
)

// leastCodes is how many three-letter codes in a row are no accident: all of
// their letters stand for amino acids, too.
const leastCodes = 4

// fromCodes translates a sequence of three-letter codes, as in Asp-Ser-His; ""
// for any other.
func fromCodes(letters string) string {
	letters = strings.ReplaceAll(letters, "-", "")
	if len(letters)%3 != 0 || len(letters) < 3*leastCodes {
		return ""
	}
	var short strings.Builder
	for k := 0; k < len(letters); k += 3 {
		letter, ok := md.LetterOf(letters[k : k+3])
		if !ok {
			return ""
		}
		short.WriteByte(letter)
	}
	return short.String()
}
