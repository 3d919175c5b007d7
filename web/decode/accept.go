package decode

import (
	"mime"
	"strconv"
	"strings"
)

// WantsCSV reports whether the client wants CSV instead of JSON. The query parameter
// "format" takes precedence over the Accept header.
func (r *Reader) WantsCSV() bool {
	switch r.Choice("format", "json", "csv") {
	case "csv":
		return true
	case "json":
		return false
	}
	accept := strings.Join(r.Request.Header.Values("Accept"), ",")
	return preference(accept, "text/csv") > preference(accept, "application/json")
}

// preference returns the weight of a media type in a list such as text/csv,
// application/*;q=0.5. The most specific matching element counts.
func preference(accept, media string) (weight float64) {
	kind, _, _ := strings.Cut(media, "/")
	specific := 0
	for element := range strings.SplitSeq(accept, ",") {
		name, parameters, err := mime.ParseMediaType(element)
		if err != nil {
			continue
		}
		matches := map[string]int{media: 3, kind + "/*": 2, "*/*": 1}[name]
		if matches <= specific {
			continue
		}
		specific, weight = matches, 1
		if q, err := strconv.ParseFloat(parameters["q"], 64); err == nil {
			weight = q
		}
	}
	return weight
}
