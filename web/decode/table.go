package decode

import (
	"slices"

	"github.com/gin-gonic/gin"

	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// IsTable reports whether the body is declared as a table, CSV or TSV.
func IsTable(c *gin.Context) bool { return slices.Contains(tableTypes, mediaType(c.Request)) }

// Table is Request for a service that reports the faults of a table, which is the
// body, and those of the query together.
func Table[T any](c *gin.Context, read func(*Reader) T) (_ T, faults []fault.Field, err error) {
	r, decoded := readAll(c, read)
	return decoded, r.faults, r.err
}

// Table returns the body, and whether its cells are separated by tabs.
func (r *Reader) Table() (text []byte, tabs bool) {
	text, err := r.readBody()
	if err != nil {
		r.fail(err)
	}
	return text, mediaType(r.Request) == tableTypes[1]
}

// Whole returns a request whose body is a text as one value: the body, and the
// parameters of the query.
func (r *Reader) Whole(text []byte) *strictjson.Value {
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
