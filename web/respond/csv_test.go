package respond_test

import (
	"bytes"
	"testing"

	"molrun/web/respond"
)

// TestTextInCSVIsNoFormula also checks that numbers stay numbers.
func TestTextInCSVIsNoFormula(t *testing.T) {
	for text, want := range map[string]string{
		"=1+2": "'=1+2", "+a": "'+a", "-a": "'-a", "@a": "'@a", "\t=1": "'\t=1", "＝1": "'＝1", "＋1": "'＋1", "－1": "'－1", "＠a": "'＠a",
		"-Inf": "'-Inf", "+0x1p1": "'+0x1p1", "-1+1": "'-1+1", "-": "'-",
		"-5": "-5", "+5.5e-3": "+5.5e-3", "a=1": "a=1", "": "", "5": "5", "é": "é",
	} {
		var b bytes.Buffer
		respond.NewCSV(&b).Row("x", text, 1, 0.5, nil)
		if got := b.String(); got != "x,"+want+",1,0.5,\n" && got != "x,\""+want+"\",1,0.5,\n" {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
