package unit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration written as 90s, 10m, 72h or 30d.
type Duration time.Duration

// UnmarshalText parses the text form.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 0 || n > 36500 {
			return fmt.Errorf("%q is not a duration; write 90s, 10m, 72h or 30d", s)
		}
		*d = Duration(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a duration; write 90s, 10m, 72h or 30d", s)
	}
	*d = Duration(parsed)
	return nil
}
