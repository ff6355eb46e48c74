package ec2

import (
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Bucket is a token bucket: how many tokens fit and how many come back each second. A bucket with no room limits
// nothing.
type Bucket struct {
	Size, Refill float64
}

// Limits are the rates at which EC2 takes calls. Each action has its own bucket; the first three say how large it is.
type Limits struct {
	Read     Bucket // Describe*
	BareRead Bucket // some Describe* without ids, filter and paging
	Write    Bucket // everything else
	// Actions have buckets of other sizes than their kind.
	Actions map[string]Bucket
	// Resources are second buckets, from which a call takes a token for each instance that it makes or ends.
	Resources map[string]Bucket
}

// AWSLimits are the limits that AWS documents for an account that never asked for more ("Request throttling for the
// Amazon EC2 API" in its developer guide).
func AWSLimits() Limits {
	return Limits{
		Read:     Bucket{100, 20},
		BareRead: Bucket{50, 10},
		Write:    Bucket{50, 5},
		Actions: map[string]Bucket{
			"CreateLaunchTemplateVersion": {100, 5},
			"CreateTags":                  {100, 10},
			"DeleteTags":                  {100, 10},
			"RunInstances":                {5, 2},
			"TerminateInstances":          {100, 5},
		},
		Resources: map[string]Bucket{
			"RunInstances":       {1000, 2},
			"TerminateInstances": {1000, 20},
		},
	}
}

// NoLimits takes every call.
func NoLimits() Limits { return Limits{} }

// bareRead tells the actions that have a smaller bucket when they ask for everything.
func bareRead(action string) bool {
	switch action {
	case "DescribeInstances", "DescribeInstanceStatus", "DescribeSecurityGroups":
		return true
	}
	return false
}

// limiter keeps the buckets.
type limiter struct {
	now func() time.Time

	mu      sync.Mutex
	limits  Limits
	buckets map[string]*level
	refused map[string]int
}

// level is how full a bucket is.
type level struct {
	tokens float64
	at     time.Time
}

func newLimiter(limits Limits, now func() time.Time) *limiter {
	return &limiter{now: now, limits: limits, buckets: map[string]*level{}, refused: map[string]int{}}
}

// SetLimits changes the limits. All buckets are full again.
func (s *Service) SetLimits(limits Limits) {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.limiter.limits, s.limiter.buckets = limits, map[string]*level{}
}

// Throttled says how often each action was refused for coming too often.
func (s *Service) Throttled() map[string]int {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	return maps.Clone(s.limiter.refused)
}

// admit takes the tokens of a call, or is the error if there are too few.
func (l *limiter) admit(action string, form url.Values) *wire.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	name, bucket := l.bucketFor(action, form)
	resource, units := l.limits.Resources[action], float64(instancesIn(action, form))
	ok := l.has(name, bucket, 1) && l.has("resource/"+action, resource, units)
	if !ok {
		l.refused[action]++
		return &wire.Error{Code: "RequestLimitExceeded", Message: "Request limit exceeded.",
			Status: http.StatusServiceUnavailable}
	}
	l.take(name, bucket, 1)
	l.take("resource/"+action, resource, units)
	return nil
}

func (l *limiter) bucketFor(action string, form url.Values) (string, Bucket) {
	if b, ok := l.limits.Actions[action]; ok {
		return action, b
	}
	if !strings.HasPrefix(action, "Describe") {
		return action, l.limits.Write
	}
	bare := form.Get("MaxResults") == "" && !hasPrefixIn(form, "Filter.") && !hasPrefixIn(form, "InstanceId.") &&
		!hasPrefixIn(form, "GroupId.")
	if bareRead(action) && bare {
		return "bare/" + action, l.limits.BareRead
	}
	return action, l.limits.Read
}

// instancesIn counts the instances that a call is about.
func instancesIn(action string, form url.Values) int {
	switch action {
	case "RunInstances":
		n, err := strconv.Atoi(form.Get("MaxCount"))
		if err != nil {
			return 1
		}
		return n
	case "TerminateInstances":
		n := 0
		for name := range form {
			if strings.HasPrefix(name, "InstanceId.") {
				n++
			}
		}
		return n
	}
	return 0
}

func (l *limiter) has(name string, b Bucket, tokens float64) bool {
	if b.Size == 0 || tokens == 0 {
		return true
	}
	at := l.now()
	v := l.buckets[name]
	if v == nil {
		v = &level{tokens: b.Size, at: at}
		l.buckets[name] = v
	}
	v.tokens = min(b.Size, v.tokens+b.Refill*at.Sub(v.at).Seconds())
	v.at = at
	return v.tokens >= tokens
}

func (l *limiter) take(name string, b Bucket, tokens float64) {
	if b.Size > 0 && tokens > 0 {
		l.buckets[name].tokens -= tokens
	}
}
