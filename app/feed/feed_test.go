package feed_test

import (
	"encoding/json"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/events"
	"molrun/app/feed"
)

func TestDamagedEventsAreNotRead(t *testing.T) {
	for _, text := range []string{"", "{", `{"kind":7,"data":{}}`, `{"kind":"job"}`, `{"kind":"job","data":7}`} {
		if e, err := feed.Decode(events.Entry{Value: []byte(text)}); err == nil {
			t.Errorf("%q is read as %+v", text, e)
		}
	}
}

func TestFiguresOfABoundedSizeAreTold(t *testing.T) {
	const most = 32 << 10
	for size, told := range map[int]bool{2: true, most: true, most + 1: false} {
		figures := json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
		j := &app.Job{Status: app.Completed, Metrics: &app.Metrics{Results: figures}}
		all, _ := feed.Of(&app.Job{Status: app.Running}, app.EncodedJob{Job: j, Brief: []byte("{}")})
		if len(all) != 2 || all[0].Kind != feed.NewMetrics || strings.Contains(string(all[0].Data), string(figures)) != told {
			t.Errorf("of %d bytes: %d events, the first has %d bytes", size, len(all), len(all[0].Data))
		}
	}
}
