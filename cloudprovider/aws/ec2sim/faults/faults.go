// Package faults makes calls to the simulated cloud fail, wait, get throttled, be denied, or lose their answers, so
// that an outage can be rehearsed.
package faults

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Fault is something that goes wrong with calls. Service and Action are patterns with stars; empty ones match
// everything.
type Fault struct {
	Service string `json:"service,omitempty"`
	Action  string `json:"action,omitempty"`
	// Code, Message and Status are the error. Without a code the call is only delayed, or its answer lost.
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Status  int    `json:"status,omitempty"` // 400 if zero
	// Delay is how long the call waits first.
	Delay time.Duration `json:"-"`
	// Lose lets the call be done and its answer get lost.
	Lose bool `json:"lose,omitempty"`
	// Times is how many calls it strikes; zero: all until it is removed.
	Times int `json:"times,omitempty"`
	// Every makes it strike only each n-th call that matches; zero and one: each.
	Every int `json:"every,omitempty"`
}

// Limit is how many calls are let through.
type Limit struct {
	Service string `json:"service,omitempty"`
	Action  string `json:"action,omitempty"`
	// PerSecond calls come back into a bucket that holds Burst of them; all matching calls share it.
	PerSecond float64 `json:"perSecond"`
	Burst     float64 `json:"burst"`
}

// Options are what an injector is made of.
type Options struct {
	Clock wire.Clock
	// After tells when a time has passed, for delays; time.After if nil.
	After func(time.Duration) <-chan time.Time
}

// Injector keeps the faults and puts calls through them. It is a wire.Gate.
type Injector struct {
	opts Options

	mu     sync.Mutex
	faults []*active
	limits []*bucket
	denied map[string]bool // patterns such as ec2:CreateFleet
	loses  map[*wire.Call]bool
}

type active struct {
	Fault
	seen, struck int
}

type bucket struct {
	Limit
	tokens float64
	filled time.Time
}

var _ wire.Gate = (*Injector)(nil)

// New makes an injector that does nothing yet.
func New(opts Options) *Injector {
	if opts.After == nil {
		opts.After = time.After
	}
	return &Injector{opts: opts, denied: map[string]bool{}, loses: map[*wire.Call]bool{}}
}

// Add makes a fault happen from now on.
func (i *Injector) Add(f Fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = append(i.faults, &active{Fault: f})
}

// Throttle limits calls from now on.
func (i *Injector) Throttle(l Limit) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.limits = append(i.limits, &bucket{Limit: l, tokens: l.Burst, filled: i.opts.Clock.Now()})
}

// Deny takes a permission away: "ec2:CreateFleet", or a pattern such as "ec2:Create*".
func (i *Injector) Deny(permission string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.denied[permission] = true
}

// PassRole is a permission that no call has the name of.
const PassRole = "iam:PassRole"

// Allow gives a permission back that Deny took, and says whether it had taken it.
func (i *Injector) Allow(permission string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	was := i.denied[permission]
	delete(i.denied, permission)
	return was
}

// Names says whether patterns, of which empty ones match everything, name an action such as ec2:CreateFleet.
func Names(service, action, name string) bool {
	of, what, _ := strings.Cut(name, ":")
	return like(service, of) && like(action, what)
}

// Clear takes all faults and limits away and gives all permissions back.
func (i *Injector) Clear() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults, i.limits = nil, nil
	clear(i.denied)
}

// Active lists the faults that still strike, the limits and the permissions taken.
func (i *Injector) Active() ([]Fault, []Limit, []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := []Fault{}
	for _, f := range i.faults {
		all = append(all, f.Fault)
	}
	limits := []Limit{}
	for _, b := range i.limits {
		limits = append(limits, b.Limit)
	}
	return all, limits, slices.Sorted(maps.Keys(i.denied))
}

// Pass lets happen to a call what is due. A delay ends early when the caller goes.
func (i *Injector) Pass(c *wire.Call) *wire.Error {
	strike, failed := i.judge(c)
	if strike == nil {
		return failed
	}
	if strike.Delay > 0 {
		var gone context.Context = context.Background()
		if c.HTTP != nil {
			gone = c.HTTP.Context()
		}
		select {
		case <-i.opts.After(strike.Delay):
		case <-gone.Done():
		}
	}
	if strike.Code == "" {
		return failed
	}
	message := strike.Message
	if message == "" {
		message = fmt.Sprintf("Somebody asked the simulator to answer %s:%s with %s.", c.Service, c.Action, strike.Code)
	}
	return &wire.Error{Code: strike.Code, Message: message, Status: strike.Status}
}

// judge finds what happens to a call: a fault that strikes, or an error.
func (i *Injector) judge(c *wire.Call) (*Fault, *wire.Error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for permission := range i.denied {
		if needs(c, permission) {
			return nil, denied(c, permission)
		}
	}
	for _, b := range i.limits {
		if matches(b.Service, b.Action, c) && !b.take(i.opts.Clock.Now()) {
			return nil, Throttled(c)
		}
	}
	for n, f := range i.faults {
		if !matches(f.Service, f.Action, c) {
			continue
		}
		f.seen++
		if f.Every > 1 && f.seen%f.Every != 0 {
			continue
		}
		f.struck++
		if f.Times > 0 && f.struck >= f.Times {
			i.faults = slices.Delete(i.faults, n, n+1)
		}
		if f.Lose && f.Code == "" {
			i.loses[c] = true
		}
		strike := f.Fault
		return &strike, nil
	}
	return nil, nil
}

// Lose says whether the answer of a call gets lost after it was done. It says so once.
func (i *Injector) Lose(c *wire.Call) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	lost := i.loses[c]
	delete(i.loses, c)
	return lost
}

func (b *bucket) take(now time.Time) bool {
	b.tokens = min(b.Burst, b.tokens+b.PerSecond*now.Sub(b.filled).Seconds())
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

func matches(service, action string, c *wire.Call) bool {
	return like(service, c.Service) && like(action, c.Action)
}

func like(pattern, value string) bool {
	ok, err := path.Match(pattern, value)
	return pattern == "" || err == nil && ok
}

// needs says whether a call needs a permission: the one of its own name, or that to hand a role to EC2, which shows
// when the role is put into an instance profile.
func needs(c *wire.Call, permission string) bool {
	if like(permission, c.Service+":"+c.Action) {
		return true
	}
	return permission == PassRole && c.Service == "iam" && c.Action == "AddRoleToInstanceProfile"
}

func denied(c *wire.Call, permission string) *wire.Error {
	e := wire.Denied(c)
	if permission == PassRole {
		e.Message = fmt.Sprintf("User with access key %s is not authorized to perform: iam:PassRole because no "+
			"identity-based policy allows the iam:PassRole action", c.AccessKey)
	}
	return e
}

// Throttled is the error for too many calls, as the service words it.
func Throttled(c *wire.Call) *wire.Error {
	switch c.Service {
	case "ec2":
		return &wire.Error{Code: "RequestLimitExceeded", Message: "Request limit exceeded.",
			Status: http.StatusServiceUnavailable}
	case "iam", "sts":
		return &wire.Error{Code: "Throttling", Message: "Rate exceeded", Status: http.StatusBadRequest}
	case "sqs":
		return &wire.Error{Code: "RequestThrottled", Message: "Rate exceeded", Status: http.StatusBadRequest}
	case "eks", "arc-zonal-shift":
		return &wire.Error{Code: "ThrottlingException", Message: "Rate exceeded", Status: http.StatusTooManyRequests}
	default:
		return &wire.Error{Code: "ThrottlingException", Message: "Rate exceeded", Status: http.StatusBadRequest}
	}
}
