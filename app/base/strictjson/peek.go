package strictjson

import "bytes"

// Peek visits the members of an object that was encoded by Encode, until visit returns
// false. It neither decodes nor validates, and is many times faster than Parse; names and
// strings with escapes are visited as written.
func Peek(object []byte, visit func(name, value []byte) bool) {
	for rest := object[min(1, len(object)):]; len(rest) > 0 && rest[0] == '"'; {
		end := textEnd(rest)
		name := rest[1:max(1, end-1)] // an unpaired quote has no end
		rest = rest[min(end+1, len(rest)):]
		if end = valueEnd(rest); !visit(name, rest[:end]) {
			return
		}
		rest = rest[min(end+1, len(rest)):]
	}
}

// textEnd returns the end of the string at the start of b.
func textEnd(b []byte) int {
	quote := 0 // the next quote at or after i
	for i := 1; i < len(b); {
		if quote < i {
			next := bytes.IndexByte(b[i:], '"')
			if next < 0 {
				break
			}
			quote = i + next
		}
		escape := bytes.IndexByte(b[i:quote], '\\')
		if escape < 0 {
			return quote + 1
		}
		i += escape + 2
	}
	return len(b)
}

// valueEnd returns the end of the value at the start of b.
func valueEnd(b []byte) int {
	for i, depth := 0, 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += textEnd(b[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		if depth < 0 {
			return i
		}
	}
	return len(b)
}
