package unit

import "fmt"

// Count formats a number with its noun: 1 job, 2 jobs.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
