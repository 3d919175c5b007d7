package terminal

import (
	"fmt"
	"time"
)

// Duration formats d with its two largest units, such as 2h05m.
func Duration(d time.Duration) string {
	switch s := int64(d.Round(time.Second) / time.Second); {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
	}
}

// Seconds formats a duration in seconds as Duration does.
func Seconds(s float64) string { return Duration(time.Duration(s * float64(time.Second))) }

// Size formats a number of bytes with a unit, such as 4.2 MB.
func Size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n)/1000, []string{"kB", "MB", "GB", "TB", "PB", "EB"}
	for value >= 999.5 && len(units) > 1 {
		value, units = value/1000, units[1:]
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f %s", value, units[0])
	}
	return fmt.Sprintf("%.0f %s", value, units[0])
}

// Ago formats how long ago a time was, or its date if that is more informative.
func Ago(then, now time.Time) string {
	switch minutes := int(now.Sub(then) / time.Minute); {
	case then.IsZero():
		return "-"
	case minutes < 1:
		return "now"
	case minutes < 60:
		return fmt.Sprintf("%dm ago", minutes)
	case minutes < 24*60:
		return fmt.Sprintf("%dh%02dm ago", minutes/60, minutes%60)
	case then.Year() == now.Year():
		return then.Local().Format("Jan _2 15:04")
	default:
		return then.Local().Format(time.DateOnly)
	}
}
