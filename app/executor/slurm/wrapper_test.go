package slurm

import (
	"os/exec"
	"strings"
	"testing"

	"molrun/app/base/plaintext"
)

func FuzzQuote(f *testing.F) {
	f.Add(`it's "quoted" $(touch /tmp/x) \ ` + "`id`\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") {
			t.Skip("no argument of a program holds it")
		}
		out, err := exec.Command("sh", "-c", "printf %s "+plaintext.ShellWord(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q comes back as %q, %v", text, out, err)
		}
	})
}
