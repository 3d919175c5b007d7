package input

import (
	"strings"

	"molrun/app/engine/md"
)

// leastCodes is the number of consecutive three-letter codes that cannot be a
// coincidence: their letters are valid one-letter codes, too.
const leastCodes = 4

// fromCodes translates a sequence of three-letter codes, such as Asp-Ser-His, into
// one-letter codes. It returns "" for any other sequence.
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
