package notice_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"molrun/app/base/unit"
	"molrun/app/job/notice"
	"molrun/app/test/must"
)

func TestOnlyPublicAddressesAreReached(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("8.8.4.4")}
	for address, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "100.64.0.1": false, "127.0.0.1": false, "127.9.9.9": false,
		"169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false, "172.32.0.1": true, "192.168.1.1": false,
		"192.0.0.1": false, "192.0.2.1": false, "198.18.0.1": false, "198.51.100.1": false, "203.0.113.9": false,
		"224.0.0.1": false, "239.1.1.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::127.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "::ffff:0:7f00:1": false, "4000::1": false, "5f00::1": false, "a000::1": false, "3ffe::1": true, "2a00::1": true, "2001::1": false, "2001:db8::1": false,
		"fc00::1": false, "fd12::1": false, "fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false,
		"8.8.4.4": false, "::ffff:8.8.4.4": false,
	} {
		must.Equal(t, address, (notice.Policy{}).Allows(netip.MustParseAddr(address), own), want)
	}
	if (notice.Policy{}).Allows(netip.Addr{}, nil) {
		t.Error("no address is reached")
	}
	allowing := notice.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("127.0.0.1/32")}}
	for address, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "127.0.0.1": true, "127.0.0.2": false, "::1": false, "64:ff9b::a01:203": false,
	} {
		must.Equal(t, fmt.Sprintf("with 10.1.0.0/16 and 127.0.0.1 allowed, %s", address), allowing.Allows(netip.MustParseAddr(address), nil), want)
	}
}

func TestTargetsThatCannotBeUsedAreFaults(t *testing.T) {
	p := notice.Policy{Mail: true, Domains: []string{"partner.example"}}
	for target, want := range map[string]string{
		"https://hooks.example/a?b=c":           "",
		"https://hooks.example:8443/":           "",
		"https://[2606:4700::1111]/":            "",
		"http://hooks.example/":                 "use https://",
		"ftp://hooks.example/":                  "use an https:// address",
		"hooks.example":                         "write an address",
		"https:hooks.example":                   "write an address",
		"https://":                              "write an address",
		"https://hooks.example/a b":             "write an address",
		"https://hooks.example/\r\nX-Evil:1":    "write an address",
		"https://höoks.example/":                "write an address",
		"https://user:secret@hooks.example/":    "omit user and password",
		"https://hooks.example/#part":           "omit the part from #",
		"https://hooks.example:22/":             "use port 443",
		"https://hooks.example:25/":             "use port 443",
		"https://hooks.example:80/":             "",
		"https://hooks.example:443/":            "",
		"https://hooks.example:1023/":           "use port 443",
		"https://hooks.example:1024/":           "",
		"https://hooks.example:65535/":          "",
		"https://hooks.example:65536/":          "use port 443",
		"https://hooks.example:0/":              "use port 443",
		"https://127.1/":                        "", // treated as a name; rejected when connecting
		"https://0x7f.0.0.1/":                   "",
		"https://[64:ff9b::7f00:1]/":            "not public",
		"https://[fe80::1%25eth0]/":             "not public",
		"https://0.0.0.0/":                      "not public",
		"https://127.0.0.1%0d%0aX:1/":           "write an address",
		"https://hooks.example@127.0.0.1/":      "omit user and password",
		"mailto:ann%0d%0aBcc:x@lab.example":     "one e-mail address",
		"mailto:ann@lab.example%0d%0aBcc:x@y.z": "one e-mail address",
		"mailto:\"a b\"@partner.example":        "one e-mail address",
		"https://127.0.0.1/":                    "not public",
		"https://[::1]/":                        "not public",
		"https://[::ffff:10.0.0.1]/":            "not public",
		"https://" + strings.Repeat("a", 2000):  "write an address",
		"mailto:ann@lab.example":                "",
		"mailto:Ann@LAB.example":                "",
		"mailto:anyone@partner.example":         "",
		"mailto:anyone@PARTNER.example":         "",
		"mailto:bob@lab.example":                "only go to your own address, ann@lab.example, or to addresses of partner.example",
		"mailto:x@sub.partner.example":          "only go to your own address",
		"mailto:":                               "one e-mail address",
		"mailto:ann@lab.example,b@evil.example": "one e-mail address",
		"mailto:Ann <ann@lab.example>":          "one e-mail address",
		"mailto:ann@lab.example?bcc=b@c.d":      "one e-mail address",
		"mailto:ann@lab.example\r\nBcc: x@y.z":  "one e-mail address",
	} {
		faults := p.Faults("ann@lab.example", []string{target})
		if want == "" && len(faults) > 0 || want != "" && (len(faults) != 1 || !strings.Contains(faults[0].Msg, want)) {
			t.Errorf("%q: %v, want %q", target, faults, want)
		}
	}
	various := make([]string, notice.MaxTargets)
	for i := range various {
		various[i] = fmt.Sprintf("https://hooks.example/%d", i)
	}
	if f := p.Faults("ann@lab.example", various); len(f) != 0 {
		t.Errorf("as many as are allowed: %v", f)
	}
	if f := (notice.Policy{}).Faults("ann@lab.example", []string{"mailto:ann@lab.example"}); len(f) != 1 || !strings.Contains(f[0].Msg, "sends no mail") {
		t.Errorf("without a mail server: %v", f)
	}
	if f := (notice.Policy{HTTP: true}).Faults("", []string{"http://hooks.example/"}); len(f) != 0 {
		t.Errorf("http where it is allowed: %v", f)
	}
	twice := p.Faults("ann@lab.example", []string{"https://a.example/", "https://a.example/"})
	if len(twice) != 1 || twice[0].Loc[2] != 1 {
		t.Errorf("the same twice: %v", twice)
	}
	if f := p.Faults("ann@lab.example", make([]string, notice.MaxTargets+1)); len(f) != 1 || len(f[0].Loc) != 2 {
		t.Errorf("too many: %v", f)
	}
}

// The expected signature is computed here as the specification describes, without the
// package's own code.
func TestMessagesAreSignedByTheSpecification(t *testing.T) {
	first, second := notice.NewSecret(), notice.NewSecret()
	if !strings.HasPrefix(first, "whsec_") || first == second {
		t.Fatalf("secrets %s, %s", first, second)
	}
	header, err := notice.Sign("msg_1", time.Unix(1_700_000_000, 999), []byte(`{"a":1}`), first, second)
	must.OK(t, err)
	want := []string{}
	for _, secret := range []string{first, second} {
		key, err := base64.StdEncoding.DecodeString(secret[len("whsec_"):])
		if err != nil || len(key) < 24 || len(key) > 64 {
			t.Fatalf("a key of %d bytes, %v: the specification asks for 24 to 64", len(key), err)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(`msg_1.1700000000.{"a":1}`))
		want = append(want, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	must.Equal(t, "header", header, strings.Join(want, " "))
	if _, err := notice.Sign("msg_1", time.Now(), nil, "whsec_*"); err == nil {
		t.Error("a damaged secret is no error")
	}
}

func TestDeliveriesAreTriedForADay(t *testing.T) {
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	s := notice.DefaultSchedule()
	d := &notice.Delivery{State: notice.Pending, CreatedAt: unit.At(start), Body: []byte("{}")}
	now, pauses := start, []time.Duration{}
	for d.State == notice.Pending {
		d.Tried(notice.Attempt{Status: 500, Error: "the receiver responded with status 500"}, now, s)
		if d.State == notice.Pending {
			pauses = append(pauses, d.NextAt.Sub(now))
			now = d.NextAt.Time
		}
	}
	if pauses[0] != 5*time.Second || pauses[1] != 10*time.Second || pauses[len(pauses)-1] != 2*time.Hour {
		t.Errorf("pauses %v", pauses)
	}
	if took := now.Sub(start); took < 24*time.Hour || took > 26*time.Hour {
		t.Errorf("given up after %v", took)
	}
	if d.State != notice.Abandoned || !strings.HasPrefix(d.Error, "abandoned: ") || d.Body != nil || !d.NextAt.IsZero() || d.EndedAt.Time != now {
		t.Errorf("%+v", d)
	}

	asked := &notice.Delivery{State: notice.Pending, CreatedAt: unit.At(start)}
	asked.Tried(notice.Attempt{Status: 503, Error: "busy", RetryAfter: time.Hour}, start, s)
	must.Equal(t, "the receiver asked for an hour, the next attempt is after", asked.NextAt.Sub(start), time.Hour)
	asked.Tried(notice.Attempt{Status: 503, Error: "busy", RetryAfter: 1000 * time.Hour}, start, s)
	must.Equal(t, "the receiver asked for too long, the next attempt is after", asked.NextAt.Sub(start), s.Longest)
	asked.Tried(notice.Attempt{Status: 410, Error: "gone"}, start, s)
	must.Equal(t, "a receiver that is gone", asked.State, notice.Abandoned)
	refused := &notice.Delivery{State: notice.Pending, CreatedAt: unit.At(start)}
	refused.Tried(notice.Attempt{Status: 550, Error: "no such user", Final: true}, start, s)
	if refused.State != notice.Abandoned || refused.Error != "permanently rejected: no such user" || refused.Status != 550 || refused.Attempts != 1 {
		t.Errorf("a permanently rejected message: %+v", refused)
	}
	done := &notice.Delivery{State: notice.Pending, CreatedAt: unit.At(start), Error: "before"}
	done.Tried(notice.Attempt{Status: 204}, start, s)
	if done.State != notice.Delivered || done.Error != "" || done.Status != 204 || done.Attempts != 1 {
		t.Errorf("%+v", done)
	}
}

func TestEachReceiverHasALane(t *testing.T) {
	lanes := map[string]bool{}
	for _, d := range []notice.Delivery{
		{Organization: "lab", Hook: "1", Target: "https://a.example/"},
		{Organization: "lab", Hook: "2", Target: "https://a.example/"},
		{Organization: "lab", Target: "https://a.example/"},
		{Organization: "lab", Target: "https://a.example:8443/"},
		{Organization: "lab", Target: "https://A.example/"}, // differs only in case
		{Organization: "lab", Target: "https://mail/"},
		{Organization: "lab", Target: "mailto:ann@a.example"},
		{Organization: "other", Target: "https://a.example/"},
	} {
		lanes[d.Queue()] = true
		organization, asked := notice.ParseQueue(d.Queue())
		if organization != d.Organization || asked != (d.Hook == "" && strings.HasPrefix(d.Target, "https:")) {
			t.Errorf("the queue of %+v belongs to %s, named by a user: %t", d, organization, asked)
		}
	}
	must.Equal(t, "lanes", len(lanes), 7)
}
