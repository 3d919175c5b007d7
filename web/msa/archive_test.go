package msa

import (
	"strings"
	"testing"
)

// However a file is split into pieces, its query gets the client's name and a NUL follows
// its last line.
func TestAnAlignmentIsRenamed(t *testing.T) {
	for name, tt := range map[string]struct {
		file, want string
		queryOnly  bool
	}{
		"rows":               {">chain 1\nMKT\n>hit\t95\nMk-T\n", ">101\nMKT\n>hit\t95\nMk-T\n\x00", false},
		"no last line feed":  {">chain 1\nMKT\n>hit\nMKT", ">101\nMKT\n>hit\nMKT\n\x00", false},
		"a line in front":    {"#3\t1\n>chain 1\nMKT\n", ">101\nMKT\n\x00", false},
		"wrapped":            {">c\nMK\nT\n>hit\nMK\nT\n", ">101\nMK\nT\n>hit\nMK\nT\n\x00", false},
		"the query alone":    {">c\nMK\nT\n>hit\nMKT\n", ">101\nMK\nT\n\x00", true},
		"alone without rows": {">c\nMKT", ">101\nMKT\n\x00", true},
	} {
		for piece := 1; piece <= len(tt.file); piece++ {
			var got strings.Builder
			w := &renamed{to: &got, name: "101", queryOnly: tt.queryOnly}
			for rest := tt.file; rest != ""; rest = rest[min(piece, len(rest)):] {
				if _, err := w.Write([]byte(rest[:min(piece, len(rest))])); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.end(); err != nil || got.String() != tt.want {
				t.Errorf("%s, pieces of %d: %q, want %q (%v)", name, piece, got.String(), tt.want, err)
			}
		}
	}
}
