package fault

import "errors"

// Text returns what a command prints for err: the sentence without the code, and the
// cause.
func Text(err error) string {
	var e *Error
	if !errors.As(err, &e) || len(e.Fields) > 0 {
		return err.Error()
	}
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}
