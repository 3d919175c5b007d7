package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// conn is a client that costs next to nothing, since it shares the CPUs with
// the server that it measures: requests are written as they are, and of answers
// it reads status and length. It speaks HTTP/1.1 on one connection.
type conn struct {
	net    net.Conn
	reader *bufio.Reader
	body   []byte
	sink   []byte // for answers that nobody keeps
}

// patience bounds every exchange.
const patience = 10 * time.Minute

func dial(address string) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	return &conn{net: c, reader: bufio.NewReaderSize(c, 64<<10)}, nil
}

func (c *conn) close() { _ = c.net.Close() }

// head gives the head of a request; header lines end with \r\n.
func head(method, path, header string, length int64) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: bench\r\n%sContent-Length: %d\r\n\r\n", method, path, header, length)
}

// do sends a request and gives the answer's body, which is good until the next.
func (c *conn) do(request []byte) ([]byte, error) {
	length, err := c.begin(request)
	if err != nil {
		return nil, err
	}
	if cap(c.body) < length {
		c.body = make([]byte, length, 2*length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.reader, c.body)
	return c.body, err
}

// drop sends a request, reads the answer's body and keeps nothing. It gives
// its length, and when its first byte was there.
func (c *conn) drop(request []byte) (length int, first time.Time, err error) {
	if length, err = c.begin(request); err != nil || length == 0 {
		return length, time.Now(), err
	}
	if _, err := c.reader.Peek(1); err != nil {
		return length, first, err
	}
	first = time.Now()
	buffered, err := c.reader.Discard(min(length, c.reader.Buffered()))
	if c.sink == nil {
		c.sink = make([]byte, 1<<20)
	}
	for left := length - buffered; left > 0 && err == nil; {
		var n int
		n, err = c.net.Read(c.sink[:min(left, len(c.sink))])
		left -= n
	}
	return length, first, err
}

// send sends a request whose body is a file's, which goes to the network inside
// the kernel.
func (c *conn) send(head []byte, body *os.File) error {
	if err := c.net.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.net.Write(head); err != nil {
		return err
	}
	if _, err := io.Copy(c.net, body); err != nil {
		return err
	}
	length, err := c.answer()
	if err == nil {
		_, err = c.reader.Discard(length)
	}
	return err
}

func (c *conn) begin(request []byte) (length int, err error) {
	if err := c.net.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := c.net.Write(request); err != nil {
		return 0, err
	}
	return c.answer()
}

var contentLength = []byte("content-length:")

// answer reads the head of an answer and gives the length of the body.
func (c *conn) answer() (length int, err error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("the answer begins with %q", line)
	}
	code := string(line[9:12])
	length = -1
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, err
			}
		}
	}
	switch {
	case code[0] != '2':
		text, _ := io.ReadAll(io.LimitReader(c.reader, int64(min(max(length, 0), 1000))))
		return 0, fmt.Errorf("status %s: %s", code, text)
	case length < 0 && code != "204" && code != "201":
		return 0, errors.New("the answer does not tell its length")
	}
	return max(length, 0), nil
}
