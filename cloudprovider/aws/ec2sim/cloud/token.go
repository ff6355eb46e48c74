package cloud

import (
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// tokenLife is how long a client token is remembered. EC2 promises a day for most actions.
const tokenLife = 24 * time.Hour

// token is what a call with a client token asked for and got.
type token struct {
	asked  string
	answer any
	at     time.Time
}

// Recall returns what an earlier call with the same action and client token answered. A token that came with another
// request is an error.
func (w *World) Recall(action, clientToken, asked string) (any, *wire.Error) {
	defer w.enter()()
	t, ok := w.tokens[action+"/"+clientToken]
	if clientToken == "" || !ok || w.clock.Now().Sub(t.at) > tokenLife {
		return nil, nil
	}
	if t.asked != asked {
		return nil, wire.Errorf("IdempotentParameterMismatch", "The request uses the same client token as a "+
			"previous, but non-identical request.")
	}
	return t.answer, nil
}

// Remember keeps the answer of a call with a client token.
func (w *World) Remember(action, clientToken, asked string, answer any) {
	defer w.enter()()
	if clientToken == "" {
		return
	}
	now := w.clock.Now()
	for key, t := range w.tokens {
		if now.Sub(t.at) > tokenLife {
			delete(w.tokens, key)
		}
	}
	w.tokens[action+"/"+clientToken] = token{asked: asked, answer: answer, at: now}
}
