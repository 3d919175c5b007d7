package respond_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"molrun/app/base/fault"
	"molrun/app/test/must"
	"molrun/web/respond"
)

func TestEveryCodeHasItsStatus(t *testing.T) {
	statuses := map[fault.Code]int{
		"BAD_REQUEST": 400, "UNAUTHORIZED": 401, "FORBIDDEN": 403, "LINK_INVALID": 403, "LINK_EXPIRED": 403, "QUOTA_EXCEEDED": 403,
		"NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405, "JOB_ALREADY_EXISTS": 409, "JOB_NOT_COMPLETED": 409,
		"JOB_NOT_FINISHED": 409, "JOB_NOT_FAILED": 409, "UPLOAD_NOT_RECEIVED": 409, "UPLOAD_COMPLETED": 409,
		"FILE_IN_USE": 409, "BODY_TOO_LARGE": 413, "FILE_TOO_LARGE": 413, "UNSUPPORTED_MEDIA_TYPE": 415,
		"RANGE_INVALID": 416, "INVALID": 422, "RATE_LIMITED": 429, "UNAVAILABLE": 503, "INTERNAL": 500, "STORAGE_FULL": 507,
		"MADE_UP": 500,
	}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	for code, status := range statuses {
		for _, err := range []error{fault.Errorf(code, "say %s", code), fmt.Errorf("store: %w", fault.Errorf(code, "say %s", code)), fmt.Errorf("store: %w", code)} {
			w := httptest.NewRecorder()
			respond.Error(w, httptest.NewRequest("GET", "/", nil), err)
			must.Equal(t, fmt.Sprintf("%v", err), w.Code, status)
			must.Equal(t, fmt.Sprintf("%v: %s", err, w.Body), strings.HasPrefix(w.Body.String(), `{"detail":[{"loc":["body"],"msg":"`), status == 422)
			if retry := w.Header().Get("Retry-After") != ""; retry != (status == 429 || status == 503) {
				t.Errorf("%v: Retry-After %q", err, w.Header().Get("Retry-After"))
			}
		}
	}
	for err, status := range map[error]int{
		errors.New("unknown"):    500,
		context.Canceled:         503,
		context.DeadlineExceeded: 503,
	} {
		w := httptest.NewRecorder()
		respond.Error(w, httptest.NewRequest("GET", "/", nil).WithContext(given), fmt.Errorf("store: %w", err))
		if w.Code != status || strings.Contains(w.Body.String(), "store:") {
			t.Errorf("%v: %d %s", err, w.Code, w.Body)
		}
	}
}
