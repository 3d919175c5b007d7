package decode

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/test/must"
	"molrun/web/respond"
)

// everything is a decoded request with a value of every kind.
type everything struct {
	limit, count int64
	wait         time.Duration
	flag         bool
	text         string
	texts        []string
	rows         []*strictjson.Value
}

func readEverything(r *Reader) (e everything) {
	e.text = r.Path("name")
	e.limit = r.Integer("limit", 1, 100, 50)
	e.wait = r.Duration("wait", time.Minute)
	e.flag = r.Flag("flag")
	r.Text("text")
	r.StartKey()
	r.Choice("status", "QUEUED", "RUNNING")
	b := r.Object(Optional)
	b.Text("text", Required)
	b.Member("settings", strictjson.Object, Required)
	e.count = OrZero(b.Integer("count", 0, MaxExact))
	e.texts = b.Texts("texts")
	e.rows = b.Items("rows", strictjson.Object, Optional)
	b.Flag("flag")
	return e
}

// request decodes the request as a route would.
func request(name, query string, body []byte) (_ everything, err error) {
	r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
	r.URL.RawQuery = query
	r.Header.Set("Content-Type", "application/json")
	c := gin.CreateTestContextOnly(httptest.NewRecorder(), gin.New())
	c.Request = r
	c.Params = gin.Params{{Key: "name", Value: name}}
	limits := Limits{URL: 1000, Body: 1 << 20, Arrive: time.Minute, JSON: strictjson.DefaultLimits(), Budget: NewBudget(1<<30, 1<<30)}
	defer limits.Apply(c)(&err)
	return Request(c, readEverything)
}

func TestDurations(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "30": 30 * time.Second, "0": 0, "0s": 0, "1m": time.Minute, "60": time.Minute, "250ms": 250 * time.Millisecond,
	} {
		if req, err := request("a", "wait="+text, nil); err != nil || req.wait != want {
			t.Errorf("%s: %v, %v, want %v", text, req.wait, err, want)
		}
	}
	for text, kind := range map[string]string{
		"61": "value", "61s": "value", "-1s": "value", "1h": "value", "": "type", "soon": "type", "1.5": "type", "-1": "type", "99999999999999999999": "type",
	} {
		_, err := request("a", "wait="+text, nil)
		if faults := Faults(err); len(faults) != 1 || faults[0].Type != kind {
			t.Errorf("%s: %v, want a fault of kind %s", text, err, kind)
		}
	}
}

func TestFaultsOfOneMemberAreBounded(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	_, err := request("a", "", []byte(`{"texts":[`+strings.Repeat("1,", maxItemFaults)+`1],"text":"x","settings":{}}`))
	must.Equal(t, "faults", len(Faults(err)), maxItemFaults)
}

func FuzzDecode(f *testing.F) {
	gin.SetMode(gin.ReleaseMode)
	f.Add("a", "limit=1&wait=3s&flag=TRUE", []byte(`{"text":"x","settings":{},"count":3,"texts":["a"],"rows":[{}],"flag":true}`))
	f.Add("%2F", "limit=&limit=2", []byte(`{"text":1,"settings":[],"count":1e400,"texts":[1,2],"rows":[1]}`))
	f.Add("%zz", "a=%zz;b", []byte(`{"":{"":[[[`))
	f.Add("\xff", "%ff=%ff&startKey=%ff", []byte("\xff"))
	f.Add("", "status=QUEUED", []byte(` null `))
	f.Fuzz(func(t *testing.T, name, query string, body []byte) {
		req, err := request(name, query, body)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if req.limit < 1 || req.limit > 100 || req.count < 0 || req.wait < 0 || req.wait > time.Minute || !utf8.ValidString(req.text) {
			t.Errorf("accepted %+v", req)
		}
		if _, err := url.ParseQuery(query); err != nil {
			t.Errorf("accepted the query %q", query)
		}
		for _, row := range req.rows {
			if row == nil {
				t.Error("accepted a row that is no object")
			}
		}
	})
}

// checkRefusal requires err to be either an error that becomes a 422 with field errors,
// or BodyTooLarge.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	if fault.CodeOf(err) == fault.BodyTooLarge {
		return
	}
	faults := Faults(err)
	if len(faults) == 0 {
		t.Fatalf("refused with %v", err)
	}
	for _, f := range faults {
		first, _ := f.Loc[0].(string)
		if !strings.Contains("body query path header", first) || first == "" || f.Msg == "" || f.Type == "" {
			t.Errorf("an incomplete fault: %+v", f)
		}
	}
	w := httptest.NewRecorder()
	respond.Error(w, httptest.NewRequest("GET", "/", nil), err)
	if w.Code != http.StatusUnprocessableEntity || !utf8.Valid(w.Body.Bytes()) {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
}

// deadlines records the read deadlines of a connection.
type deadlines struct {
	*httptest.ResponseRecorder
	read []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.read = append(d.read, at)
	return nil
}

func (d *deadlines) SetWriteDeadline(time.Time) error { return nil }

func TestBodyDeadlineIsClearedAfterTheBody(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	for _, tt := range []struct {
		name, body string
		sets       int
	}{{"with body", "{}", 2}, {"without", "", 0}} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		engine := gin.New()
		engine.POST("/", func(c *gin.Context) {
			limits := Limits{URL: 1000, Body: 100, Arrive: time.Minute, JSON: strictjson.DefaultLimits(), Budget: NewBudget(100, 100)}
			var err error
			defer limits.Apply(c)(&err)
			if _, err = Request(c, func(r *Reader) *Object { return r.Object(Optional) }); err != nil {
				t.Error(err)
			}
		})
		r := httptest.NewRequest("POST", "/", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		engine.ServeHTTP(w, r)
		if len(w.read) != tt.sets || tt.sets == 2 && (w.read[0].IsZero() || !w.read[1].IsZero()) {
			t.Errorf("%s: read deadlines %v", tt.name, w.read)
		}
	}
}
