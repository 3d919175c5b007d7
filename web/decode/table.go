package decode

import (
	"slices"

	"github.com/gin-gonic/gin"

	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// IsTable reports whether the body is declared as CSV or TSV.
func IsTable(c *gin.Context) bool { return slices.Contains(tableTypes, mediaType(c.Request)) }

// Table is Request for a service that reports the errors of a table in the body together
// with the errors of the query.
func Table[T any](c *gin.Context, read func(*Reader) T) (_ T, faults []fault.Field, err error) {
	r, decoded := readAll(c, read)
	return decoded, r.faults, r.err
}

// Table returns the body, and whether it is tab-separated.
func (r *Reader) Table() (text []byte, tabs bool) {
	text, err := r.readBody()
	if err != nil {
		r.fail(err)
	}
	return text, mediaType(r.Request) == tableTypes[1]
}

// WithText returns a request with a text body as one value: the query parameters and the
// body.
func (r *Reader) WithText(text []byte) *strictjson.Value {
	v := &strictjson.Value{Kind: strictjson.Object}
	add := func(name string, texts ...string) {
		list := &strictjson.Value{Kind: strictjson.Array}
		for _, text := range texts {
			list.Items = append(list.Items, &strictjson.Value{Kind: strictjson.String, Text: text})
		}
		v.Members = append(v.Members, strictjson.Member{Name: name, Value: list})
	}
	for name, values := range r.query {
		add("query "+name, values...)
	}
	add("body", mediaType(r.Request), string(text))
	return v
}
