package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"molrun/app/base/unit"
)

// options say what to measure and for how long.
type options struct {
	Molrun   string        // the binary to measure
	Dir      string        // for temporary files; "" is the system's directory
	Seeded   string        // a data directory to copy instead of seeding one
	Jobs     int           // in the large database
	Rounds   int           // of all measurements; the table shows medians
	Duration time.Duration // of each measurement
	Only     []string      // what grow measures
	Size     unit.Bytes    // of uploaded and downloaded files
	Largest  unit.Bytes    // size of the largest file in a result, which is sparse

	Table io.Writer // of the goals
	Lines io.Writer // JSON, one line per measurement; nil prints none
	Log   io.Writer // progress
}

func (o options) logf(format string, args ...any) { fmt.Fprintf(o.Log, format+"\n", args...) }

// addFlags adds the flags that run and grow share.
func addFlags(f *pflag.FlagSet, o *options) {
	addPlaces(f, o)
	f.DurationVar(&o.Duration, "for", 2*time.Second, "duration of one measurement")
}

// addPlaces adds the flags that all measurements share.
func addPlaces(f *pflag.FlagSet, o *options) {
	f.StringVar(&o.Molrun, "molrun", "", "molrun binary to measure (default: one built for the purpose)")
	f.StringVar(&o.Dir, "dir", "", "directory for temporary files (default: the system's)")
}

// size is a flag such as 16MiB.
type size struct{ *unit.Bytes }

// Set parses the value of the flag.
func (s size) Set(text string) error { return s.UnmarshalText([]byte(text)) }

// Type returns the placeholder for the value in the help.
func (size) Type() string { return "size" }
