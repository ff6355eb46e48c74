package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	// mostBytes bounds a request. The API server sends whole lists: a few thousand NodeClaims are some tens of
	// megabytes.
	mostBytes = 64 << 20
	// smallBody is what is read of a request without asking anybody: any object by itself, and short lists. All
	// connections together are 256 MiB.
	smallBody = 512 << 10
	// readsWithin is how long the small part of a request may take, and each piece of the rest.
	readsWithin = 10 * time.Second
)

// read reads a request. Nothing is held for what is only announced: memory grows with what has arrived, and a large
// request pays for each piece before it is read.
func (h *handler) read(ctx context.Context, connection *http.ResponseController, r *http.Request,
	paid *stake) (*apiextensionsv1.ConversionReview, *refusal) {
	if why := sizeRefused(r.ContentLength); why != nil {
		return nil, why
	}
	size := int(r.ContentLength)
	body := make([]byte, 0, min(size, 4<<10))
	for next := min(size, smallBody); len(body) < size; next = min(size, next+piece) {
		if next > smallBody {
			if err := h.pay(ctx, paid, size); err != nil {
				return nil, &refusal{http.StatusServiceUnavailable, err}
			}
		}
		// Only connections of the server's own can be told. The server itself lifts it once all is read.
		_ = connection.SetReadDeadline(deadline(ctx, readsWithin))
		var err error
		if body, err = readTo(r.Body, body, next, size); err != nil {
			return nil, &refusal{http.StatusBadRequest, fmt.Errorf("reading the ConversionReview: %w", err)}
		}
	}
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, &refusal{http.StatusBadRequest, fmt.Errorf("reading the ConversionReview: %w", err)}
	}
	if review.Request == nil {
		return nil, &refusal{http.StatusBadRequest, errors.New("the ConversionReview has no request")}
	}
	return &review, nil
}

// sizeRefused tells why a request of such a size is not read; nil if it is.
func sizeRefused(size int64) *refusal {
	if size < 0 {
		return &refusal{http.StatusLengthRequired, errors.New("a request to convert must tell its Content-Length")}
	}
	if size > mostBytes {
		return &refusal{http.StatusRequestEntityTooLarge,
			fmt.Errorf("a request to convert has more than %d MiB, and no "+
				"more are read: ask for fewer objects at a time (limit and continue), or ask for %s", mostBytes>>20,
				newerVersion)}
	}
	return nil
}

// pay takes the next piece of a request of so many bytes.
func (h *handler) pay(ctx context.Context, paid *stake, size int) error {
	if !paid.joined {
		if err := h.purse.join(paid, (size-smallBody+piece-1)/piece); err != nil {
			return err
		}
	}
	return h.purse.take(ctx, paid)
}

// readTo reads until there are so many bytes; of them so many come in all.
func readTo(from io.Reader, body []byte, until, all int) ([]byte, error) {
	for len(body) < until {
		if len(body) == cap(body) {
			body = append(make([]byte, 0, min(all, 2*cap(body))), body...)
		}
		n, err := from.Read(body[len(body):min(until, cap(body))])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) && len(body) < all {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return body, nil
}

// deadline is after so long, or when the context ends.
func deadline(ctx context.Context, after time.Duration) time.Time {
	at := time.Now().Add(after)
	if end, ok := ctx.Deadline(); ok && end.Before(at) {
		return end
	}
	return at
}
