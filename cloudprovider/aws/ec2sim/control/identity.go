package control

import (
	"net/http"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/sigv4"
)

// permission is one permission, such as ec2:CreateFleet.
type permission struct {
	Action string `json:"action"`
}

// The states of a key.
const (
	KeyValid   = "valid"
	KeyExpired = "expired"
	KeyRemoved = "removed"
)

// Credential is a key as the panel shows it: without its secrets.
type Credential struct {
	ID      string     `json:"id"`
	ARN     string     `json:"arn,omitempty"`
	State   string     `json:"state"`
	Session bool       `json:"session"` // temporary: what a role's credentials are
	Expires *time.Time `json:"expires,omitempty"`
}

type expired struct {
	Expired int `json:"expired"`
}

type restored struct {
	IDs []string `json:"restored"`
}

// Credentials lists the keys, those that were removed last.
func (p *Panel) Credentials() []Credential {
	known, removed := p.Keys.List()
	all := []Credential{}
	for n, k := range append(known, removed...) {
		c := Credential{ID: k.ID, ARN: k.ARN, State: KeyValid, Session: k.Token != ""}
		if !k.Expires.IsZero() {
			c.Expires = &k.Expires
			if !p.World.Now().Before(k.Expires) {
				c.State = KeyExpired
			}
		}
		if n >= len(known) {
			c.State = KeyRemoved
		}
		all = append(all, c)
	}
	return all
}

func (p *Panel) identityRoutes(on route) {
	on("POST", "permissions/deny", func(r *http.Request) (any, error) {
		in, err := read[permission](r)
		if err != nil {
			return nil, err
		}
		if err := p.checkPermission(in.Action); err != nil {
			return nil, err
		}
		p.Faults.Deny(in.Action)
		return nil, nil
	})
	on("POST", "permissions/allow", func(r *http.Request) (any, error) {
		in, err := read[permission](r)
		if err != nil {
			return nil, err
		}
		if _, _, denied := p.Faults.Active(); !p.Faults.Allow(in.Action) {
			return nil, bad("nobody has denied %q; denied are: %s", in.Action, orNone(denied))
		}
		return nil, nil
	})
	on("GET", "credentials", func(*http.Request) (any, error) { return p.Credentials(), nil })
	on("POST", "credentials", func(r *http.Request) (any, error) {
		in, err := read[struct {
			ID     string `json:"id"`
			Secret string `json:"secret"`
		}](r)
		if err != nil {
			return nil, err
		}
		if in.ID == "" || in.Secret == "" {
			return nil, bad("a key needs an id and a secret")
		}
		p.Keys.Put(sigv4.Key{ID: in.ID, Secret: in.Secret})
		return nil, nil
	})
	on("DELETE", "credentials/{id}", func(r *http.Request) (any, error) { return nil, p.removeKey(r.PathValue("id")) })
	on("POST", "credentials/expire", func(*http.Request) (any, error) {
		return expired{p.Keys.ExpireAll(p.World.Now())}, nil
	})
	on("POST", "credentials/restore", func(*http.Request) (any, error) { return restored{p.Keys.Restore()}, nil })
}

func (p *Panel) removeKey(id string) error {
	if p.Keys.Remove(id) {
		return nil
	}
	var there []string
	known, _ := p.Keys.List()
	for _, k := range known {
		there = append(there, k.ID)
	}
	return bad("there is no key %q; there are: %s", id, orNone(there))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
