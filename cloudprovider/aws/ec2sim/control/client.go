package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/images"
)

// Client presses the panel's buttons from another program.
type Client struct {
	URL string // of the simulator, without Prefix
}

// Refusal is an answer of the simulator that says no.
type Refusal struct{ Method, Path, Message string }

func (r *Refusal) Error() string {
	return fmt.Sprintf("the simulator refused %s %s: %s", r.Method, r.Path, r.Message)
}

// Do calls one path below Prefix. In and out may be nil.
func (c Client) Do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("writing a request to the simulator: %w", err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+Prefix+path, body)
	if err != nil {
		return fmt.Errorf("asking the simulator: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("asking the simulator: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("reading the simulator's answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		var failed struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(text, &failed) != nil || failed.Error == "" {
			failed.Error = strings.TrimSpace(string(text))
		}
		return &Refusal{Method: method, Path: path, Message: failed.Error}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("reading the simulator's answer: %w", err)
	}
	return nil
}

// Machines lists the instances.
func (c Client) Machines(ctx context.Context) ([]Machine, error) {
	var out []Machine
	err := c.Do(ctx, http.MethodGet, "machines", nil, &out)
	return out, err
}

// Happen lets something happen to machines; see Panel.Happen.
func (c Client) Happen(ctx context.Context, verb string, in Pick) ([]string, error) {
	var out struct {
		Machines []string `json:"machines"`
	}
	err := c.Do(ctx, http.MethodPost, "machines/"+verb, in, &out)
	return out.Machines, err
}

// SetCapacity changes what can be bought.
func (c Client) SetCapacity(ctx context.Context, in Capacity) error {
	return c.Do(ctx, http.MethodPost, "capacity", in, nil)
}

// SetPrice changes a price.
func (c Client) SetPrice(ctx context.Context, in Price) error {
	return c.Do(ctx, http.MethodPost, "prices", in, nil)
}

// Publish publishes a new release of an image family.
func (c Client) Publish(ctx context.Context, family string) (images.Release, error) {
	var out images.Release
	err := c.Do(ctx, http.MethodPost, "images", map[string]string{"family": family}, &out)
	return out, err
}

// Fail makes calls go wrong.
func (c Client) Fail(ctx context.Context, in Fault) error {
	return c.Do(ctx, http.MethodPost, "faults", in, nil)
}

// Credentials lists the keys.
func (c Client) Credentials(ctx context.Context) ([]Credential, error) {
	var out []Credential
	err := c.Do(ctx, http.MethodGet, "credentials", nil, &out)
	return out, err
}

// Expire ends all sessions now and says how many there were.
func (c Client) Expire(ctx context.Context) (int, error) {
	var out expired
	err := c.Do(ctx, http.MethodPost, "credentials/expire", nil, &out)
	return out.Expired, err
}

// RestoreKeys puts the keys back that were removed, and returns their ids.
func (c Client) RestoreKeys(ctx context.Context) ([]string, error) {
	var out restored
	err := c.Do(ctx, http.MethodPost, "credentials/restore", nil, &out)
	return out.IDs, err
}

// Calls counts the calls by action, such as ec2:CreateFleet.
func (c Client) Calls(ctx context.Context) (map[string]int, error) {
	var out map[string]int
	err := c.Do(ctx, http.MethodGet, "calls", nil, &out)
	return out, err
}

// Reserve makes a capacity reservation and returns its id.
func (c Client) Reserve(ctx context.Context, in Reserve) (string, error) {
	return c.make(ctx, "reservations", in)
}

// Reservations lists the capacity reservations.
func (c Client) Reservations(ctx context.Context) ([]Reservation, error) {
	var out []Reservation
	err := c.Do(ctx, http.MethodGet, "reservations", nil, &out)
	return out, err
}

// MakeGroup makes a placement group and returns its id.
func (c Client) MakeGroup(ctx context.Context, in Group) (string, error) {
	return c.make(ctx, "placement-groups", in)
}

// PlacementGroups lists the placement groups.
func (c Client) PlacementGroups(ctx context.Context) ([]PlacementGroup, error) {
	var out []PlacementGroup
	err := c.Do(ctx, http.MethodGet, "placement-groups", nil, &out)
	return out, err
}

// make makes something that gets an id.
func (c Client) make(ctx context.Context, path string, in any) (string, error) {
	var out struct {
		ID string `json:"id"`
	}
	err := c.Do(ctx, http.MethodPost, path, in, &out)
	return out.ID, err
}
