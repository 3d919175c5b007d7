package results

import (
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestKnownFailures(t *testing.T) {
	failures := read(t, ReadFailures, `
[[failures]]
pattern = 'Cannot parse file (\S+)( at \d+)?'
message = "Could not read $1$2; it costs $$5 or ${1}x."
[[failures]]
pattern = 'Cannot'
message = "Something could not be done."
lacks = "gpu_memory"
`)
	tests := []struct{ name, log, want string }{
		{"first rule", "Cannot\nCannot parse file a.pdb at 7\n", "Could not read a.pdb at 7; it costs $5 or a.pdbx."},
		{"last match", "Cannot parse file a.pdb\nCannot parse file b.pdb\nend", "Could not read b.pdb; it costs $5 or b.pdbx."},
		{"next rule", "Cannot open", "Something could not be done."},
		{"none", "fine", ""},
		{"group with a dollar", "Cannot parse file $1", "Could not read $1; it costs $5 or $1x."},
		{"odd bytes", "Cannot parse file \x1b]0;\xfe", "Could not read ]0;?; it costs $5 or ]0;?x."},
	}
	for _, tt := range tests {
		message, lacks := failures.Explain([]byte(tt.log))
		must.Equal(t, tt.name, message, tt.want)
		must.Equal(t, tt.name+": it lacks GPU memory", lacks == LacksGPUMemory, message == "Something could not be done.")
	}
	warnings := read(t, ReadWarnings, `
[[warnings]]
pattern = '(?m)^WARNING: (.+)$'
message = "$1"
[[warnings]]
pattern = 'not converged'
message = "It has not converged."
`)
	must.Equal(t, "warnings", warnings.FindWarnings([]byte("WARNING: many gaps\nWARNING: few sites\nit is not converged\n")), []string{"many gaps", "few sites", "It has not converged."})
	long, _ := failures.Explain([]byte("Cannot parse file " + strings.Repeat("a", 5000)))
	if len(long) > maxFailureText+10 {
		t.Errorf("a message of %d bytes", len(long))
	}
}
