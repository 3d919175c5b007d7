package results

import (
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestLastErrorLine(t *testing.T) {
	tests := []struct{ name, log, want string }{
		{"empty", "", ""},
		{"nothing said", "----\n  \n 12.5 3\n[molrun: the end of a.txt]\n", ""},
		{"last line", "reading\nwriting\n\n", "writing"},
		{"traceback", "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: no atoms in chain A\n", "ValueError: no atoms in chain A"},
		{"advice after the trouble", "Fatal error:\nNo such moleculetype SOL\n\nFor more information and tips for troubleshooting, please check the website\n-----\n", "No such moleculetype SOL"},
		{"far above", "ERROR: old\n" + strings.Repeat("step done\n", 60), "step done"},
		{"blanks around", "   Error: odd box   ", "Error: odd box"},
	}
	for _, tt := range tests {
		must.Equal(t, tt.name, LastErrorLine(tt.log), tt.want)
	}
	if got := LastErrorLine("error " + strings.Repeat("x", 5000)); len(got) > maxErrorLine+10 {
		t.Errorf("a line of %d bytes", len(got))
	}
}
