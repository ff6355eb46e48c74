package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Path is where the API server asks for conversions.
const Path = "/conversion"

// handler answers the API server's requests to convert objects. What is small is bounded by the number of connections
// while it is read, and by a room while it is converted; what is large is bounded by the purse all the time. So neither
// waits for the other.
type handler struct {
	converter *converter
	purse     *purse
	// claims is for NodeClaims, for which the API server is asked about NodePools; others for all else. While the API
	// server answers it may ask here for a conversion itself, which must not wait for those who wait for it.
	claims, others *room
	log            logr.Logger
}

func newHandler(converter *converter, log logr.Logger) *handler {
	return &handler{converter: converter, log: log, purse: newPurse(pieces, mostLarge),
		claims: newRoom(claimPlaces, turns), others: newRoom(connections, turns)}
}

// refusal is why a request is not converted, as HTTP says it.
type refusal struct {
	status int
	err    error
}

func (h *handler) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answersWithin)
	defer cancel()
	paid := &stake{}
	defer h.purse.leave(paid)
	review, refused := h.read(ctx, http.NewResponseController(out), r, paid)
	var text []byte
	if refused == nil {
		text, refused = h.convert(ctx, review, paid.joined)
	}
	// Whoever does not take the answer must not keep what is held for it.
	_ = http.NewResponseController(out).SetWriteDeadline(time.Now().Add(writesWithin))
	if refused != nil {
		h.refuse(out, refused)
		return
	}
	out.Header().Set("Content-Type", "application/json")
	if _, err := out.Write(text); err != nil {
		h.log.Error(err, "an answer to the API server could not be sent")
	}
}

// refuse tells the API server and the log. API servers ask again where they are told when.
func (h *handler) refuse(out http.ResponseWriter, why *refusal) {
	if why.status != http.StatusBadRequest {
		h.log.Error(why.err, "objects could not be converted")
	}
	if errors.Is(why.err, errFull) {
		out.Header().Set("Retry-After", "1")
	}
	http.Error(out, why.err.Error(), why.status)
}

// convert answers a request once there is room, and leaves the room before the answer is sent.
func (h *handler) convert(ctx context.Context, review *apiextensionsv1.ConversionReview,
	large bool) ([]byte, *refusal) {
	if !large {
		leave, err := h.roomFor(review.Request).enter(ctx)
		if err != nil {
			return nil, &refusal{http.StatusServiceUnavailable, err}
		}
		defer leave()
	}
	review.Response = h.answer(ctx, review.Request)
	review.Request = nil
	text, err := json.Marshal(review)
	if err != nil {
		return nil, &refusal{http.StatusInternalServerError, fmt.Errorf("writing the answer: %w", err)}
	}
	return text, nil
}

// roomFor is the room for the objects of a request. What can't be read here is refused later.
func (h *handler) roomFor(request *apiextensionsv1.ConversionRequest) *room {
	for i := range request.Objects {
		var kind metav1.TypeMeta
		if json.Unmarshal(request.Objects[i].Raw, &kind) == nil && kind.Kind == "NodeClaim" {
			return h.claims
		}
	}
	return h.others
}

// answer converts all objects, or none: that is how the API server wants it. A panic is an answer, too.
func (h *handler) answer(ctx context.Context,
	request *apiextensionsv1.ConversionRequest) (response *apiextensionsv1.ConversionResponse) {
	response = &apiextensionsv1.ConversionResponse{UID: request.UID}
	defer func() {
		if broken := recover(); broken != nil {
			err := fmt.Errorf("converting failed, which is a mistake in Tenon, please report it: %v", broken)
			h.log.Error(err, "an object could not be converted", "stack", string(debug.Stack()))
			failed(response, err)
		}
	}()
	converter := *h.converter
	converter.expiry = askOnce(converter.expiry)
	for i := range request.Objects {
		made, err := []byte(nil), ctx.Err() // nobody waits for the rest of a list if the API server has given up
		if err == nil {
			made, err = converter.convert(ctx, request.Objects[i].Raw, request.DesiredAPIVersion)
		}
		if err != nil {
			h.log.Error(err, "an object could not be converted", "version", request.DesiredAPIVersion)
			failed(response, err)
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: made})
	}
	response.Result.Status = metav1.StatusSuccess
	return response
}

func failed(response *apiextensionsv1.ConversionResponse, err error) {
	response.ConvertedObjects = nil
	response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
}

// askOnce asks about each pool once: a list may hold thousands of claims of one pool.
func askOnce(ask Expiry) Expiry {
	known := map[string]v1.NillableDuration{}
	return func(ctx context.Context, pool string) (v1.NillableDuration, error) {
		if expiry, ok := known[pool]; ok {
			return expiry, nil
		}
		expiry, err := ask(ctx, pool)
		if err == nil {
			known[pool] = expiry
		}
		return expiry, err
	}
}
