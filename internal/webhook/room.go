package webhook

import (
	"context"
	"fmt"
	"time"
)

const (
	// mostBytes bounds a request. The API server sends whole lists: a few thousand NodeClaims are some tens of megabytes.
	mostBytes = 64 << 20
	// piece is what a request takes of the room at least, and roomPieces are all there are: so many requests are read at
	// the same time, or fewer that are larger.
	piece      = 1 << 20
	roomPieces = 128
	// readsWithin is how long the body of a request may take once there is room for it.
	readsWithin = 10 * time.Second
)

// room bounds what is converted at the same time, in bytes and so in requests. Others wait for their turn.
type room struct {
	// entrance is held by whoever is taking pieces: two that each have half of what they need would wait for ever.
	entrance chan struct{}
	pieces   chan struct{}
}

func newRoom(pieces int) *room {
	return &room{entrance: make(chan struct{}, 1), pieces: make(chan struct{}, pieces)}
}

// enter waits until there is room for a request of so many bytes, less than 0 if that is not known. leave gives it
// back.
func (r *room) enter(ctx context.Context, bytes int64) (leave func(), err error) {
	if bytes < 0 {
		bytes = mostBytes
	}
	need := min(1+int(bytes/piece), cap(r.pieces))
	taken := 0
	leave = func() {
		for ; taken > 0; taken-- {
			<-r.pieces
		}
	}
	select {
	case r.entrance <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for other conversions to end: %w", ctx.Err())
	}
	defer func() { <-r.entrance }()
	for taken < need {
		select {
		case r.pieces <- struct{}{}:
			taken++
		case <-ctx.Done():
			leave()
			return nil, fmt.Errorf("waiting for other conversions to end: %w", ctx.Err())
		}
	}
	return leave, nil
}
