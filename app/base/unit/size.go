// Package unit reads and writes sizes, durations, times and counts as text, in settings,
// files, messages and records.
package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size written as 500, 64KiB, 16MiB, 2GB and so on.
type Bytes int64

var byteUnits = []struct {
	suffix string
	size   int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

// UnmarshalText parses the text form.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, unit := strings.TrimSpace(string(text)), int64(1)
	for _, u := range byteUnits {
		if head, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(head), u.size
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n*float64(unit) > 1<<62 {
		return fmt.Errorf("%q is not a size; write 64KiB, 16MiB, 2GiB or a number of bytes", text)
	}
	*b = Bytes(n * float64(unit))
	return nil
}

// String formats a size with one decimal in the largest unit that fits.
func (b Bytes) String() string {
	const units = "KMGTPE"
	if b < 1<<10 {
		return fmt.Sprintf("%d bytes", int64(b))
	}
	size, unit := float64(b)/(1<<10), 0
	for size >= 1<<10 && unit < len(units)-1 {
		size, unit = size/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", size, units[unit])
}
