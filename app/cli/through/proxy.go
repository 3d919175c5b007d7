package through

import (
	"net/http"
	"strings"
)

// proxy is the program in front of the service, as its answers show.
type proxy string

const (
	nginx   proxy = "nginx"
	apache  proxy = "Apache"
	caddy   proxy = "Caddy"
	unknown proxy = "" // or none
)

func proxyOf(h http.Header) proxy {
	text := strings.ToLower(h.Get("Server") + " " + h.Get("Via"))
	for _, p := range []proxy{nginx, apache, caddy} {
		if strings.Contains(text, strings.ToLower(string(p))) {
			return p
		}
	}
	return unknown
}

func (p proxy) String() string {
	if p == unknown {
		return "no proxy, or one that does not say its name"
	}
	return string(p)
}

// setting is something that proxies can be told.
type setting int

const (
	upstream setting = iota
	linkAddress
	headerSize
	urlSize
	bodySize
	requestBuffering
	answerBuffering
	ranges
	waitTime
	transferTime
)

// advices name the settings of the proxies that web/deploy has examples for.
var advices = map[setting]map[proxy]string{
	upstream: {
		nginx:  "look at proxy_pass, its slash at the end, and the path of its location",
		apache: "look at ProxyPass and whether mod_proxy_http is loaded",
		caddy:  "look at reverse_proxy and at handle_path",
	},
	linkAddress: {
		nginx:  "set public_url in molrun's config.toml, or proxy_set_header Host $http_host",
		apache: "set public_url in molrun's config.toml, or ProxyPreserveHost On",
		caddy:  "set public_url in molrun's config.toml, and remove header_up Host",
	},
	headerSize: {
		nginx:  "raise large_client_header_buffers",
		apache: "raise LimitRequestFieldSize",
		caddy:  "raise max_header_size",
	},
	urlSize: {
		nginx:  "raise large_client_header_buffers",
		apache: "raise LimitRequestLine",
		caddy:  "raise max_header_size",
	},
	bodySize: {
		nginx:  "set client_max_body_size 0",
		apache: "set LimitRequestBody 0, and look at SecRequestBodyLimit of mod_security",
		caddy:  "remove max_size of request_body",
	},
	requestBuffering: {
		nginx:  "set proxy_request_buffering off",
		apache: "remove SetInputFilter BUFFER and SetEnv proxy-sendcl",
		caddy:  "remove request_buffers (buffer_requests)",
	},
	answerBuffering: {
		nginx:  "set proxy_buffering off, or remove proxy_ignore_headers X-Accel-Buffering",
		apache: "set flushpackets=on in ProxyPass, and remove output filters for event streams",
		caddy:  "set flush_interval -1, and remove response_buffers (buffer_responses)",
	},
	ranges: {
		nginx:  "remove proxy_set_header Range and proxy_cache, so that the header Range is passed on",
		apache: "remove RequestHeader unset Range and mod_cache, so that the header Range is passed on",
		caddy:  "remove header_up -Range, so that the header Range is passed on",
	},
	waitTime: {
		nginx:  "set proxy_read_timeout 120s",
		apache: "set ProxyTimeout 120 (or timeout=120 in ProxyPass)",
		caddy:  "raise response_header_timeout and read_timeout of the transport",
	},
	transferTime: {
		nginx:  "look at client_body_timeout, send_timeout, proxy_send_timeout and proxy_max_temp_file_size",
		apache: "look at RequestReadTimeout, Timeout and ProxyTimeout",
		caddy:  "look at read_body and write of timeouts, and at read_timeout and write_timeout of the transport",
	},
}

// advice says which setting to look at: of this proxy, or of each.
func (p proxy) advice(s setting) string {
	if text, ok := advices[s][p]; ok {
		return text
	}
	var all []string
	for _, p := range []proxy{nginx, apache, caddy} {
		all = append(all, string(p)+": "+advices[s][p])
	}
	return strings.Join(all, "; ")
}
