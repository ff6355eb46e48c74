package webhook

import (
	"context"
	"errors"
	"fmt"
)

const (
	// turns are the small requests of a room that are converted at the same time.
	turns = 32
	// claimPlaces are the small requests with NodeClaims, those that wait among them.
	claimPlaces = 256
)

// errFull tells that too many wait already.
var errFull = errors.New("too many wait to be converted")

// room bounds how many requests are converted at the same time, and how many wait for that.
type room struct {
	places, turns chan struct{}
}

func newRoom(places, turns int) *room {
	return &room{places: make(chan struct{}, places), turns: make(chan struct{}, turns)}
}

// enter waits for a turn. leave gives it back.
func (r *room) enter(ctx context.Context) (leave func(), err error) {
	select {
	case r.places <- struct{}{}:
	default:
		return nil, fmt.Errorf("%d requests: %w", cap(r.places), errFull)
	}
	select {
	case r.turns <- struct{}{}:
		return func() { <-r.turns; <-r.places }, nil
	case <-ctx.Done():
		<-r.places
		return nil, fmt.Errorf("waiting for other conversions to end: %w", ctx.Err())
	}
}
