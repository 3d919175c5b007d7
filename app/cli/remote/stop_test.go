package remote

import (
	"context"
	"errors"
	"testing"

	"molrun/app/cli/terminal"
)

func TestPartialFailureNamesWhatWasChanged(t *testing.T) {
	s := &session{Terminal: &terminal.Terminal{Quiet: true}}
	err := changeEach(t.Context(), s, "file", []string{"a", "b", "c"}, "deleted", func(_ context.Context, _ *session, name string) error {
		if name == "b" {
			return errors.New("no answer")
		}
		return nil
	})
	if err == nil || err.Error() != "1 of 3 files are not deleted: no answer" {
		t.Errorf("error %v", err)
	}
}
