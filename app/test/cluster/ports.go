package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
)

const (
	firstPort = 26817 // unless SLURM_TEST_PORT is set
	lastPort  = 32767 // the system assigns higher ports to arbitrary programs
	blockSize = 40
	maxNodes  = 32
)

// ports is a block of TCP ports. This process listens on the last port, so that
// concurrent tests of other packages choose another block even before a daemon listens.
type ports struct {
	first int
	guard net.Listener
}

// takePorts finds a free block.
func takePorts(nodes int) (*ports, error) {
	if nodes > maxNodes {
		return nil, fmt.Errorf("%d nodes are too many for a block of ports", nodes)
	}
	first := firstPort
	if text := os.Getenv("SLURM_TEST_PORT"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("SLURM_TEST_PORT: %w", err)
		}
		first = n
	}
	for ; first+blockSize <= lastPort; first += blockSize {
		guard, err := listen(first + blockSize - 1)
		if err != nil {
			continue
		}
		if free(first, 3+max(nodes, 2)) {
			return &ports{first: first, guard: guard}, nil
		}
		guard.Close()
	}
	return nil, errors.New("there is no free block of ports; set SLURM_TEST_PORT")
}

func free(first, count int) bool {
	for port := first; port < first+count; port++ {
		l, err := listen(port)
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}
