package notice

import (
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"molrun/app/base/fault"
)

// Limits on the targets of a job.
const (
	MaxTargets   = 10   // per job
	MaxTargetLen = 2000 // bytes per target
)

// mailScheme is the prefix of a target that is an e-mail address.
const mailScheme = "mailto:"

// Address returns the e-mail address of a target, or false if it is a URL.
func Address(target string) (string, bool) { return strings.CutPrefix(target, mailScheme) }

// Policy defines where notifications can be sent.
type Policy struct {
	HTTP    bool           // allows http:// as well as https://
	Allowed []netip.Prefix // allowed blocks that are not public

	Mail    bool     // the service can send mail
	Domains []string // lower-case domains that any user can send to; users can always send to their own address
}

// Faults returns the validation errors of the targets that a user names. Their locations
// are within body.notify.
func (p Policy) Faults(email string, targets []string) (faults []fault.Field) {
	add := func(msg string, at ...any) {
		if msg != "" {
			faults = append(faults, fault.Field{Loc: append([]any{"body", "notify"}, at...), Msg: msg, Type: "value"})
		}
	}
	if n := len(targets); n > MaxTargets {
		add(fmt.Sprintf("list at most %d addresses, not %d", MaxTargets, n))
		return faults
	}
	for i, target := range targets {
		switch address, isMail := Address(target); {
		case slices.Contains(targets[:i], target):
			add("this address is listed twice", i)
		case isMail:
			add(p.checkMail(email, address), i)
		default:
			add(p.CheckURL(target), i)
		}
	}
	return faults
}

func (p Policy) checkMail(own, address string) string {
	parsed, err := mail.ParseAddress(address)
	_, domain, _ := strings.Cut(address, "@")
	switch {
	case !p.Mail:
		return "this service sends no mail; name an https:// address"
	case err != nil || parsed.Address != address || len(address) > 254 || !plain(address):
		return "write mailto: and one e-mail address, such as mailto:ann@lab.example"
	case strings.EqualFold(address, own), slices.Contains(p.Domains, strings.ToLower(domain)):
		return ""
	}
	return fmt.Sprintf("mail can only go to your own address, %s%s", own, p.orDomains())
}

func (p Policy) orDomains() string {
	if len(p.Domains) == 0 {
		return ""
	}
	return ", or to addresses of " + strings.Join(p.Domains, ", ")
}

// CheckURL returns what is wrong with the URL of a receiver, or "". The host is not
// resolved until the service connects.
func (p Policy) CheckURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > MaxTargetLen || !plain(text) || u.Opaque != "" || u.Hostname() == "":
		return fmt.Sprintf("write an address such as https://hooks.example/molrun, of at most %d printable ASCII characters", MaxTargetLen)
	case u.Scheme == "http" && !p.HTTP:
		return "use https://; this service sends nothing unencrypted"
	case u.Scheme != "https" && u.Scheme != "http":
		return "use an https:// address, or mailto: and an e-mail address"
	case u.User != nil:
		return "omit user and password; receivers verify the signature instead"
	case u.Fragment != "":
		return "omit the part from # on"
	case !usualPort(u.Port()):
		return "use port 443, 80 or one of 1024 to 65535"
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !p.Allows(a, nil) {
		return forbidden
	}
	return ""
}

// forbidden must not reveal what is at an address.
const forbidden = "this address is not public, and the service does not connect to it; its operator can allow it (notify.allow)"

// plain reports whether text is ASCII without spaces and control characters.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// usualPort reports whether HTTP commonly uses a port. Users must not be able to reach
// other services, such as mail.
func usualPort(text string) bool {
	n, err := strconv.Atoi(text)
	return text == "" || err == nil && (n == 443 || n == 80 || n >= 1024 && n <= 65535)
}
