package main

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
)

const firstPage = "/jobs?limit=50&organization=true"

// pageAfter returns the path of the page at a cursor.
func pageAfter(cursor string) string { return firstPage + "&startKey=" + url.QueryEscape(cursor) }

// collectCursors walks the whole listing and keeps the cursors of at least as
// many pages, evenly spaced. A listing of one page has none.
func (s *server) collectCursors(least int) error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.close()
	var all []string
	for path := firstPage; ; {
		body, err := c.do(s.get(path))
		if err != nil {
			return err
		}
		cursor, err := cursorOf(body)
		if err != nil {
			return err
		}
		if cursor == "" {
			break
		}
		all = append(all, cursor)
		path = pageAfter(cursor)
	}
	apart := max(1, len(all)/least)
	for i := 0; i < len(all); i += apart {
		s.cursors = append(s.cursors, all[i])
	}
	return nil
}

// cursorOf finds the cursor at the end of a page without decoding the page.
func cursorOf(body []byte) (string, error) {
	var page struct{ StartKey string }
	tail := body[max(0, len(body)-200):]
	const member = `],"startKey":`
	for i := len(tail) - len(member); i >= 0; i-- {
		if string(tail[i:i+len(member)]) == member {
			err := json.Unmarshal(append([]byte(`{"startKey":`), tail[i+len(member):]...), &page)
			return page.StartKey, err
		}
	}
	return "", nil
}

// randomPages returns requests for random pages, or for the first page if there
// is no other.
func (s *server) randomPages() [][]byte {
	if len(s.cursors) == 0 {
		return [][]byte{s.get(firstPage)}
	}
	var requests [][]byte
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(len(s.cursors)) {
		requests = append(requests, s.get(pageAfter(s.cursors[i])))
	}
	return requests
}

// filter is a combination of filters of a listing.
type filter struct{ user, algorithm, status string }

func (f filter) path() string {
	path := "/jobs?limit=50"
	if f.user == "" {
		path += "&organization=true"
	}
	for name, value := range map[string]string{"jobEmail": f.user, "algorithm": f.algorithm, "status": f.status} {
		if value != "" {
			path += "&" + name + "=" + url.QueryEscape(value)
		}
	}
	return path
}
