package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Path is where the API server asks for conversions.
const Path = "/conversion"

// mostBytes bounds a request. The API server sends whole lists: a few thousand NodeClaims are some tens of megabytes.
const mostBytes = 128 << 20

// handler answers the API server's requests to convert objects.
type handler struct {
	converter *converter
	log       logr.Logger
}

func (h *handler) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(http.MaxBytesReader(out, r.Body, mostBytes)).Decode(&review); err != nil {
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
