package main

import "testing"

func TestCursorIsFoundAtTheEndOfAPage(t *testing.T) {
	for page, want := range map[string]string{
		`{"jobs":[{"jobId":"a","settings":{"x":"],\"startKey\":\"no\""}}],"startKey":"abc-_"}` + "\n": "abc-_",
		`{"jobs":[{"jobId":"a"}]}` + "\n": "",
	} {
		if got, err := cursorOf([]byte(page)); got != want || err != nil {
			t.Errorf("%s: cursor %q, %v; want %q", page, got, err, want)
		}
	}
}
