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

// handler answers the API server's requests to convert objects.
type handler struct {
	converter *converter
	room      *room
	log       logr.Logger
}

func (h *handler) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.ContentLength > mostBytes {
		h.refuseSize(out, r.ContentLength)
		return
	}
	leave, err := h.room.enter(r.Context(), r.ContentLength)
	if err != nil {
		http.Error(out, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	// Whoever announces much and sends nothing must not keep the room. Only connections of the server's own can be told.
	_ = http.NewResponseController(out).SetReadDeadline(time.Now().Add(readsWithin))
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(http.MaxBytesReader(out, r.Body, mostBytes)).Decode(&review); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			h.refuseSize(out, large.Limit+1)
			return
		}
		http.Error(out, fmt.Sprintf("reading the ConversionReview: %v", err), http.StatusBadRequest)
		return
	}
	if review.Request == nil {
		http.Error(out, "the ConversionReview has no request", http.StatusBadRequest)
		return
	}
	review.Response = h.answer(r.Context(), review.Request)
	review.Request = nil
	out.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(out).Encode(review); err != nil {
		h.log.Error(err, "an answer to the API server could not be sent")
	}
}

// refuseSize refuses a request of at least so many bytes.
func (h *handler) refuseSize(out http.ResponseWriter, bytes int64) {
	err := fmt.Errorf("a request to convert has %d MiB or more, and %d MiB are read at most: "+
		"ask for fewer objects at a time (limit and continue), or ask for %s", bytes/piece, mostBytes/piece, newerVersion)
	h.log.Error(err, "objects could not be converted")
	http.Error(out, err.Error(), http.StatusRequestEntityTooLarge)
}

// answer converts all objects, or none: that is how the API server wants it. A panic is an answer, too.
func (h *handler) answer(ctx context.Context, request *apiextensionsv1.ConversionRequest) (response *apiextensionsv1.ConversionResponse) {
	response = &apiextensionsv1.ConversionResponse{UID: request.UID}
	defer func() {
		if broken := recover(); broken != nil {
			err := fmt.Errorf("converting failed, which is a mistake in Tenon, please report it: %v", broken)
			h.log.Error(err, "an object could not be converted", "stack", string(debug.Stack()))
			h.refuse(response, err)
		}
	}()
	converter := *h.converter
	converter.expiry = askOnce(converter.expiry)
	for i := range request.Objects {
		made, err := converter.convert(ctx, request.Objects[i].Raw, request.DesiredAPIVersion)
		if err != nil {
			h.log.Error(err, "an object could not be converted", "version", request.DesiredAPIVersion)
			h.refuse(response, err)
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: made})
	}
	response.Result.Status = metav1.StatusSuccess
	return response
}

func (h *handler) refuse(response *apiextensionsv1.ConversionResponse, err error) {
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
