package md

import (
	"math"
	"testing"
	"time"

	"molrun/app/test/must"
)

// archived has one value of each kind, the text last.
type archived struct {
	Integer  int64
	Float    float64
	Word     uint64
	Duration time.Duration
	Set      bool
	Text     []byte
}

func (v *archived) archive(a *Archive) {
	a.Integer(&v.Integer)
	a.Float(&v.Float)
	a.Word(&v.Word)
	a.Duration(&v.Duration)
	a.Flag(&v.Set)
	a.Text(&v.Text)
}

func TestArchiveRestoresWhatItStored(t *testing.T) {
	for _, want := range []archived{{}, {-1, math.Inf(1), 1 << 63, time.Hour, true, []byte("text")}} {
		stored := NewArchive(nil)
		want.archive(stored)
		got := archived{Integer: 5, Float: 5, Word: 5, Duration: 5, Set: !want.Set, Text: []byte("of the past")}
		a := OpenArchive(stored.bytes)
		got.archive(a)
		if len(want.Text) == 0 {
			want.Text = []byte{}
		}
		must.Equal(t, "restored", got, want)
		if !a.Complete() {
			t.Errorf("short %t, %d bytes left", a.short, len(a.bytes))
		}
		for n := range stored.bytes {
			a := OpenArchive(stored.bytes[:n])
			new(archived).archive(a)
			if !a.short {
				t.Errorf("%d of %d bytes are enough", n, len(stored.bytes))
			}
		}
	}
	negative := NewArchive(nil)
	length := int64(-1)
	negative.Integer(&length)
	a := OpenArchive(negative.bytes)
	var text []byte
	if a.Text(&text); !a.short || text != nil {
		t.Errorf("a text of -1 bytes: %q", text)
	}
}
