package doctor

import (
	"fmt"
	"testing"

	"molrun/app/test/must"
)

func TestCleanTakesOutWhatIsPrivate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nothing to see: 3 jobs, http://127.0.0.1:8080":        "nothing to see: 3 jobs, http://127.0.0.1:8080",
		"key molrun_abcdefghijkl_0123456789":                   "key <key>",
		"eyJhbGciOi.eyJzdWIi.x-_":                              "<token>",
		"authorization: Bearer abc, more":                      "authorization: Bearer <secret>, more",
		"password = hunter2 and on":                            "password = <secret> and on",
		`{"api_key":"x1","a":1}`:                               `{"api_key":"<secret>","a":1}`,
		"a?token=abc&b=1":                                      "a?token=<secret>&b=1",
		"smtp://me:pw@mail.example:25/":                        "smtp://<secret>@<host>:25/",
		"to ann.b+x@lab.example: 550":                          "to <email>: 550",
		"/home/ann/data and /Users/ann/x":                      "/home/<user>/data and /Users/<user>/x",
		`x{organization="lab",type="a"} 1`:                     `x{organization="<private>",type="a"} 1`,
		"https://molrun.lab.example/x and http://box:8080/":    "https://<host>/x and http://<host>:8080/",
		"two\nlines of ann@lab.example\n":                      "two\nlines of <email>\n",
		"the secret is missing; the tokens: see \"password\".": "the secret is missing; the tokens: <secret> \"password\".",
	} {
		must.Equal(t, fmt.Sprintf("%q", text), cleanReport(text), want)
	}
}
