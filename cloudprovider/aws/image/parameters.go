package image

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// SSMAPI is what is asked of Systems Manager. Only single parameters are read, because that is what the IAM policies of
// the contract allow.
type SSMAPI interface {
	GetParameter(ctx context.Context, in *ssm.GetParameterInput, opts ...func(*ssm.Options)) (*ssm.GetParameterOutput,
		error)
}

// How long a parameter is remembered.
const (
	// keepFor is for a parameter that names a release and never changes. A parameter that moves on with each release is
	// used for as long if Systems Manager does not answer.
	keepFor = 24 * time.Hour
	// DefaultLatest is when a parameter that moves on is read again, so that a new release is noticed, and a bad one
	// that was taken back as well, unless Options say otherwise.
	DefaultLatest = 30 * time.Minute
)

// parameters reads parameters of Systems Manager and remembers them.
type parameters struct {
	api    SSMAPI
	now    func() time.Time
	latest time.Duration // when what moves on is read again

	mu   sync.Mutex
	seen map[string]value
}

// value is what a parameter said; empty if there was no such parameter.
type value struct {
	text string
	at   time.Time
}

// get reads a parameter; empty if there is none. A parameter that moves is read again after a while.
func (p *parameters) get(ctx context.Context, name string, moves bool) (string, error) {
	have, known := p.recall(name)
	fresh := keepFor
	if moves || have.text == "" {
		fresh = p.latest
	}
	if known && p.now().Sub(have.at) < fresh {
		return have.text, nil
	}
	out, err := p.api.GetParameter(ctx, &ssm.GetParameterInput{Name: &name})
	switch {
	case err == nil && out.Parameter != nil && out.Parameter.Value != nil:
		p.remember(name, *out.Parameter.Value)
		return *out.Parameter.Value, nil
	case err == nil || fault.IsNotFound(err):
		p.remember(name, "")
		return "", nil
	case known && have.text != "" && p.now().Sub(have.at) < keepFor && !fault.IsUnauthorized(err):
		return have.text, nil
	default:
		return "", fault.Explain(fmt.Sprintf("reading the SSM parameter %s", name), err)
	}
}

func (p *parameters) recall(name string) (value, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.seen[name]
	return v, ok
}

func (p *parameters) remember(name, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for other, v := range p.seen { // what nobody has asked for in so long belongs to a class that is gone
		if now.Sub(v.at) >= keepFor {
			delete(p.seen, other)
		}
	}
	p.seen[name] = value{text: text, at: now}
}

// forget makes the next look at the parameters a real one.
func (p *parameters) forget(names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		delete(p.seen, name)
	}
}

// doubt forgets the parameters that name one of the images, which are not there: they may soon name others.
func (p *parameters) doubt(images []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, v := range p.seen {
		if slices.Contains(images, v.text) {
			delete(p.seen, name)
		}
	}
}
