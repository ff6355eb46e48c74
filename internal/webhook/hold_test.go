package webhook

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// bubble is a handler that serves on pipes.
type bubble struct {
	*testing.T
	*handler
	pipes *pipes
}

func inBubble(t *testing.T, try func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{T: t, handler: newHandler(&converter{}, logr.Discard()), pipes: newPipes()}
		server := newServer(b.handler, nil, logr.Discard())
		stopped := make(chan error, 1)
		go func() { stopped <- server.Serve(b.pipes) }()
		try(b)
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		<-stopped
	})
}

// connect returns a new connection to the server.
func (b *bubble) connect() net.Conn {
	near, far := net.Pipe()
	b.pipes.coming <- far
	b.Cleanup(func() { _ = near.Close() })
	return near
}

// send sends the head of a request and what of its body is there.
func send(c net.Conn, size int, body io.Reader) {
	_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", Path, size)
	_, _ = io.Copy(c, body)
}

// reply is how a request was answered, and after how long.
type reply struct {
	status int
	text   string
	after  time.Duration
	err    error
}

// ask sends a request and waits for the answer.
func (b *bubble) ask(body string) reply {
	began, c := time.Now(), b.connect()
	go send(c, len(body), strings.NewReader(body))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return reply{after: time.Since(began), err: err}
	}
	text, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, string(text), time.Since(began), err}
}

// answered fails unless a request is answered at once.
func (b *bubble) answered(what, body string) {
	b.Helper()
	if r := b.ask(body); r.err != nil || r.status != http.StatusOK || r.after > 0 {
		b.Errorf("%s: after %v there is %d %.200s %v", what, r.after, r.status, r.text, r.err)
	}
}

// large is a request that pays for so many pieces. Its answer is as large.
func large(pieces int) string {
	const frame = `{"request":{"uid":""}}`
	return `{"request":{"uid":"` + strings.Repeat("u", smallBody+pieces*piece-len(frame)) + `"}}`
}

// TestWhoAnnouncesOnly: a request that announces much and sends nothing, or only its beginning, keeps nothing from
// others but what it has sent, and that not for long.
func TestWhoAnnouncesOnly(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.purse = newPurse(8, 16)
		for range 5 {
			send(b.connect(), smallBody+8*piece, strings.NewReader(""))
		}
		synctest.Wait()
		b.answered("a small one beside such that have sent nothing", emptyReview)
		b.answered("a large one that needs all", large(8))
		for range 5 {
			send(b.connect(), smallBody+8*piece, strings.NewReader(strings.Repeat("a", smallBody+piece/2)))
		}
		synctest.Wait()
		b.answered("a small one beside such that have sent their beginning", emptyReview)
		b.answered("a large one", large(3))
		if r := b.ask(large(8)); r.status != http.StatusOK || r.after > readsWithin {
			b.Errorf("one that needs all there is: after %v %d %.200s %v", r.after, r.status, r.text, r.err)
		}
		if b.purse.free != 8 {
			b.Errorf("of 8 pieces %d are free", b.purse.free)
		}
	})
}

// TestWhoDoesNotRead: a client that does not take its answer loses its connection, and what was held for it is free.
func TestWhoDoesNotRead(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.purse, b.others = newPurse(2, 16), newRoom(16, 1)
		deaf := b.connect()
		send(deaf, len(large(2)), strings.NewReader(large(2)))
		send(b.connect(), len(emptyReview), strings.NewReader(emptyReview))
		synctest.Wait()
		b.answered("a small one", emptyReview)
		if r := b.ask(large(2)); r.status != http.StatusOK || r.after != writesWithin {
			b.Errorf("a large one: after %v %d %.200s %v", r.after, r.status, r.text, r.err)
		}
		if _, err := io.ReadAll(deaf); err != nil {
			b.Errorf("the connection that was not read from: %v", err)
		}
	})
}

// TestWhoWaits: a request waits for its turn for as long as the API server waits for it.
func TestWhoWaits(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.others = newRoom(32, 1)
		leave, err := b.others.enter(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for range 20 {
			c := b.connect()
			send(c, len(emptyReview), strings.NewReader(emptyReview))
			_ = c.Close()
		}
		synctest.Wait()
		if waiting := len(b.others.places) - 1; waiting > 0 {
			b.Errorf("%d wait whose client is gone", waiting)
		}
		r := b.ask(emptyReview)
		if r.status != http.StatusServiceUnavailable || r.after != answersWithin {
			b.Errorf("without a turn there is after %v %d %s %v", r.after, r.status, r.text, r.err)
		}
		leave()
		b.answered("with room again", emptyReview)
	})
}

const claimReview = `{"request":{"uid":"1","desiredAPIVersion":"karpenter.sh/v1","objects":[{
"apiVersion":"karpenter.sh/v1beta1","kind":"NodeClaim","metadata":{"name":"a","labels":{"karpenter.sh/nodepool":"p"}},
"spec":{"nodeClassRef":{"name":"d"},"requirements":[]}}]}}`

// TestClaimsAskBack: to convert a NodeClaim the API server is asked about its NodePool, for which it may ask for a
// conversion itself. As many NodeClaims as there is room for, small and large lists, leave room for that.
func TestClaimsAskBack(t *testing.T) {
	padded := claimReview + strings.Repeat(" ", smallBody+piece-len(claimReview))
	for name, body := range map[string]string{"small": claimReview, "large": padded} {
		inBubble(t, func(b *bubble) {
			b.purse, b.claims, b.others = newPurse(4, 4), newRoom(16, 4), newRoom(16, 4)
			var asked sync.WaitGroup
			asked.Add(4)
			var err error
			b.converter, err = newConverter(func(context.Context, string) (v1.NillableDuration, error) {
				asked.Done()
				asked.Wait()
				b.answered(name+": the NodePool", emptyReview)
				return v1.NeverDuration(), nil
			})
			if err != nil {
				b.Fatal(err)
			}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if r := b.ask(body); !strings.Contains(r.text, `"status":"Success"`) || r.after > 0 {
						b.Errorf("%s: after %v %d %s %v", name, r.after, r.status, r.text, r.err)
					}
				})
			}
			all.Wait()
		})
	}
}

// TestTooManyWait: what a room has no place for is refused at once, and the API server is told to ask again.
func TestTooManyWait(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.claims = newRoom(1, 1)
		leave, err := b.claims.enter(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer leave()
		began, c := time.Now(), b.connect()
		go send(c, len(claimReview), strings.NewReader(claimReview))
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "1" {
			b.Errorf("the answer is %+v, %v", answer, err)
		}
		if waited := time.Since(began); waited > 0 {
			b.Errorf("the answer came after %v", waited)
		}
	})
}
