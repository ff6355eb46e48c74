package authfilter

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// reviewed is a guard whose API server knows the token "good" and "poor" and lets good read /metrics.
func reviewed(now *time.Time) (*authFilter, *int, *error) {
	api := kubefake.NewClientset()
	calls, broken := new(int), new(error)
	api.PrependReactor("create", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		*calls++
		switch object := action.(k8stesting.CreateAction).GetObject().(type) {
		case *authenticationv1.TokenReview:
			object.Status.Authenticated = object.Spec.Token == "good" || object.Spec.Token == "poor"
			object.Status.User = authenticationv1.UserInfo{Username: object.Spec.Token, Groups: []string{"readers"}}
			return true, object, *broken
		case *authorizationv1.SubjectAccessReview:
			at := object.Spec.NonResourceAttributes
			object.Status.Allowed = object.Spec.User == "good" && object.Spec.Groups[0] == "readers" &&
				at.Path == "/metrics" && at.Verb == "get"
			return true, object, *broken
		}
		return false, nil, nil
	})
	return &authFilter{api: api, now: func() time.Time {
		return *now
	}, known: map[[sha256.Size]byte]authDecision{}}, calls, broken
}

func asks(method, path, authorization string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Authorization", authorization)
	return r
}

func TestGuardLetsInWhoMay(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		method, path, authorization string
		want                        int
	}{
		{"GET", "/metrics", "Bearer good", 200}, {"GET", "/metrics", "bearer good", 200},
		{"GET", "/metrics", "Bearer poor", 403}, {"GET", "/debug/pprof/", "Bearer good", 403},
		{"POST", "/metrics", "Bearer good", 403}, {"GET", "/metrics", "Bearer nobody", 401}, {"GET", "/metrics", "",
			401}, {"GET", "/metrics", "Basic good", 401},
		{"GET", "/metrics", "Bearer ", 401}, {"GET", "/metrics", "Bearer " + strings.Repeat("x", longestToken+1), 401},
	} {
		f, _, _ := reviewed(&now)
		if v, err := f.ask(asks(c.method, c.path, c.authorization)); err != nil || v.status != c.want {
			t.Errorf("%.60v: %+v, %v", c, v, err)
		}
	}
}

// TestGuardRemembers: a scrape every few seconds is not two calls each; who lost the right is out within a minute.
func TestGuardRemembers(t *testing.T) {
	now := time.Now()
	f, calls, broken := reviewed(&now)
	ask := func(token string) int {
		v, err := f.ask(asks("GET", "/metrics", "Bearer "+token))
		if err != nil {
			return 500
		}
		return v.status
	}
	for range 5 {
		ask("good")
	}
	if *calls != 2 {
		t.Errorf("%d calls for five scrapes, want 2", *calls)
	}
	*broken = errors.New("out of reach")
	if got := ask("good"); got != 200 {
		t.Errorf("remembered: %d", got)
	}
	now = now.Add(authRemembers)
	if got := ask("good"); got != 500 {
		t.Errorf("out of reach after a minute: %d, want an error and no entry", got)
	}
	*broken = nil
	for i := range 3 * authMost {
		ask(fmt.Sprint("nobody", i))
	}
	if len(f.known) > authMost {
		t.Errorf("%d tokens are remembered", len(f.known))
	}
}
