package protocol

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Route is one action of a service with paths.
type Route struct {
	Method string
	Path   string // with {names} for segments that vary
	Action string
	Do     func(c *wire.Call, path map[string]string, query url.Values) (any, *wire.Error)
}

// REST is a service that finds the action in method and path, and gives JSON.
type REST struct {
	Service string
	Routes  []Route
}

var _ wire.Service = (*REST)(nil)

// Name is the service's name in credential scopes.
func (s *REST) Name() string { return s.Service }

// Actions lists what the service can do.
func (s *REST) Actions() []string {
	var all []string
	for _, r := range s.Routes {
		all = append(all, r.Action)
	}
	slices.Sort(all)
	return all
}

// Action is the action of the route that fits.
func (s *REST) Action(r *http.Request, _ []byte) string {
	route, _ := s.find(r)
	return route.Action
}

// ServeAWS answers a call.
func (s *REST) ServeAWS(w http.ResponseWriter, c *wire.Call) {
	route, path := s.find(c.HTTP)
	if route.Do == nil {
		e := unknown(c)
		e.Status = http.StatusNotFound
		s.Fail(w, c, e)
		return
	}
	out, failed := route.Do(c, path, c.HTTP.URL.Query())
	if failed != nil {
		s.Fail(w, c, failed)
		return
	}
	body, err := encode(out)
	if err != nil {
		s.Fail(w, c, internal(err))
		return
	}
	write(w, c, http.StatusOK, "application/json", body)
}

// Fail writes an error.
func (s *REST) Fail(w http.ResponseWriter, c *wire.Call, e *wire.Error) {
	w.Header().Set("X-Amzn-Errortype", e.Code)
	body, err := encode(map[string]string{"message": e.Message})
	if err != nil {
		body = []byte("{}")
	}
	write(w, c, e.StatusCode(), "application/json", body)
}

func (s *REST) find(r *http.Request) (Route, map[string]string) {
	for _, route := range s.Routes {
		if route.Method != r.Method {
			continue
		}
		if path, ok := match(route.Path, r.URL.EscapedPath()); ok {
			return route, path
		}
	}
	return Route{}, nil
}

// match compares a path with a pattern and returns what stands for the names. An ARN in a path has its slashes escaped,
// so the path is cut before it is unescaped.
func match(pattern, path string) (map[string]string, bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	found := map[string]string{}
	for i, w := range want {
		name, isName := strings.CutPrefix(w, "{")
		value, err := url.PathUnescape(have[i])
		switch {
		case err != nil:
			return nil, false
		case isName && value != "":
			found[strings.TrimSuffix(name, "}")] = value
		case w != have[i]:
			return nil, false
		}
	}
	return found, true
}
