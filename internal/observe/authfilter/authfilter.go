package authfilter

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// authRemembers is how long a decision counts, and refusalLasts a refusal; of authMost decisions all are forgotten.
	authRemembers = time.Minute
	refusalLasts  = 10 * time.Second
	authMost      = 1000
	// authTimeout bounds the reviews of a request. Reviews have a budget of their own, so that nobody who sends
	// nonsense holds up the controller's calls.
	authTimeout        = 10 * time.Second
	authQPS, authBurst = 5, 10
	longestToken       = 8 << 10
)

// New lets only those read metrics and debug pages who show a token of the cluster and may get the path by its
// RBAC. Both are asked of the API server.
func New(now func() time.Time) func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
		own := rest.CopyConfig(config)
		own.QPS, own.Burst, own.RateLimiter = authQPS, authBurst, nil
		api, err := kubernetes.NewForConfigAndClient(own, client)
		if err != nil {
			return nil, fmt.Errorf("preparing to review readers of the metrics (--secure-metrics): %w", err)
		}
		f := &authFilter{api: api, now: now, known: map[[sha256.Size]byte]authDecision{}}
		return func(log logr.Logger, next http.Handler) (http.Handler, error) {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				v, err := f.ask(r)
				switch {
				case err != nil:
					log.Error(err, "a reader of the metrics port could not be reviewed; it needs create on "+
						"tokenreviews and subjectaccessreviews")
					http.Error(w, "the API server could not say whether you may read this",
						http.StatusInternalServerError)
				case v.status != http.StatusOK:
					http.Error(w, v.why, v.status)
				default:
					next.ServeHTTP(w, r)
				}
			}), nil
		}, nil
	}
}

type authFilter struct {
	api kubernetes.Interface
	now func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]authDecision // by token, verb and path
}

// authDecision is the answer to a request, as a status of HTTP.
type authDecision struct {
	status int
	why    string
	until  time.Time
}

// ask says what the request is answered with.
func (f *authFilter) ask(r *http.Request) (authDecision, error) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") || token == "" || len(token) > longestToken {
		return authDecision{status: http.StatusUnauthorized,
			why: "show a token of the cluster: Authorization: Bearer …"}, nil
	}
	verb := strings.ToLower(r.Method)
	key := sha256.Sum256([]byte(verb + " " + r.URL.Path + " " + token))
	f.mu.Lock()
	v, ok := f.known[key]
	f.mu.Unlock()
	if ok && f.now().Before(v.until) {
		return v, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), authTimeout)
	defer cancel()
	v, err := f.review(ctx, token, verb, r.URL.Path)
	if err != nil {
		return v, err
	}
	lasts := authRemembers
	if v.status != http.StatusOK {
		lasts = refusalLasts
	}
	v.until = f.now().Add(lasts)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= authMost {
		clear(f.known)
	}
	f.known[key] = v
	return v, nil
}

// review asks the API server whose the token is and whether they may.
func (f *authFilter) review(ctx context.Context, token, verb, path string) (authDecision, error) {
	who, err := f.api.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return authDecision{}, fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return authDecision{status: http.StatusUnauthorized, why: "the cluster does not know this token"}, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := f.api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
		}}, metav1.CreateOptions{})
	if err != nil {
		return authDecision{}, fmt.Errorf("asking what %s may do: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return authDecision{status: http.StatusForbidden, why: fmt.Sprintf("%s may not %s %s; allow it by a "+
			"ClusterRole with nonResourceURLs", user.Username, verb, path)}, nil
	}
	return authDecision{status: http.StatusOK}, nil
}
