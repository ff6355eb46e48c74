package labpods

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

// addresses hands out loopback addresses, one to each pod, so that all of them can listen on the same port. Linux
// answers for all of 127.0.0.0/8.
type addresses struct {
	mu     sync.Mutex
	prefix string
	next   int
	taken  map[string]bool
}

// newAddresses begins with a prefix that follows from the folder: two labs on one machine are not in each other's way.
func newAddresses(dir string) *addresses {
	sum := sha256.Sum256([]byte(dir))
	return &addresses{prefix: fmt.Sprintf("127.%d.%d.", 64+int(sum[0])%128, sum[1]), taken: map[string]bool{}}
}

// take returns an address that no pod has.
func (a *addresses) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		a.next = a.next%253 + 1
		if address := fmt.Sprintf("%s%d", a.prefix, a.next+1); !a.taken[address] {
			a.taken[address] = true
			return address
		}
	}
}

func (a *addresses) give(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.taken, address)
}
