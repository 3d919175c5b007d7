package compat

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/client"
)

// problem is an error in the format of this mount's clients.
type problem struct {
	Error  string        `json:"error"`
	Code   string        `json:"code"`
	Detail []fault.Field `json:"detail"`
}

// rejectf returns an error for a request that this mount cannot translate.
func rejectf(format string, args ...any) error {
	return &client.Error{Status: http.StatusUnprocessableEntity, Code: "INVALID", Message: fmt.Sprintf(format, args...)}
}

// fail sends an error. Clients expect 400 for every invalid request, and for a result
// that is not yet available.
func (c *call) fail(err error) {
	var e *client.Error
	if !errors.As(err, &e) {
		e = &client.Error{Status: http.StatusInternalServerError, Code: "INTERNAL", Message: "Internal error; see the service's log."}
	}
	status, message := e.Status, e.Message
	switch {
	case status == http.StatusUnprocessableEntity, e.Code == "JOB_NOT_COMPLETED":
		status = http.StatusBadRequest
	case e.Code == "QUOTA_EXCEEDED" && !strings.Contains(message, "quota"):
		message = "quota: " + message
	}
	if len(e.Details) > 0 {
		message = sentences(e.Details)
	}
	if e.After > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(e.After.Seconds())))
	}
	if e.Request != "" {
		c.w.Header().Set("X-Request-Id", e.Request)
	}
	detail := e.Details
	if detail == nil {
		detail = []fault.Field{}
	}
	c.writeAnswer(status, problem{message, e.Code, detail})
}

// sentences joins the errors, each with the name of its setting.
func sentences(faults []fault.Field) string {
	all := make([]string, 0, len(faults))
	for _, f := range faults {
		all = append(all, sentence(f))
	}
	return strings.Join(all, "; ")
}

func sentence(f fault.Field) string {
	loc := f.Loc
	for _, outer := range []string{"body", "settings"} {
		if len(loc) > 1 && loc[0] == outer {
			loc = loc[1:]
		}
	}
	return fault.Field{Loc: loc, Msg: f.Msg}.String()
}

// notFound answers requests for unknown routes, with 405 if the path has another method.
func (m *mount) notFound(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	c := &call{mount: m, w: w, r: r}
	var allowed []string
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		ask := r.Clone(r.Context())
		ask.Method = method
		if _, pattern := mux.Handler(ask); pattern != Path && !slices.Contains(allowed, method) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		c.fail(&client.Error{Status: http.StatusMethodNotAllowed, Code: "METHOD_NOT_ALLOWED", Message: r.Method + " is not allowed here; use " + strings.Join(allowed, " or ") + "."})
		return
	}
	c.fail(&client.Error{Status: http.StatusNotFound, Code: "NOT_FOUND", Message: "Nothing with this name exists."})
}
