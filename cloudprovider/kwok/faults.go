package kwok

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// Annotations of a KWOKNodeClass that make things go wrong, for demos and for tests from outside. Names and
// offerings may have the wildcards * and ?; lists are split at commas.
const (
	faultPrefix = "tenon.sh/fault-"
	// FaultNoCapacity lists offerings without capacity, as type:zone:capacity-type; what is left out means any.
	FaultNoCapacity = faultPrefix + "no-capacity"
	// FaultLaunchDelay is how long every launch takes, such as 5s.
	FaultLaunchDelay = faultPrefix + "launch-delay"
	// FaultLaunchError is the error that every launch ends with.
	FaultLaunchError = faultPrefix + "launch-error"
	// FaultNeverRegister lists names of claims whose instances never join; true means all.
	FaultNeverRegister = faultPrefix + "never-register"
	// FaultDisappear lists names of claims whose instances vanish now; true means all. The annotation is removed when
	// it is done.
	FaultDisappear = faultPrefix + "disappear"
	// FaultDrift is the reason for which every instance of the class has drifted that was launched before, a CamelCase
	// word.
	FaultDrift = faultPrefix + "drift"
	// FaultNotReady is the message with which the class is not Ready.
	FaultNotReady = faultPrefix + "not-ready"
)

// FaultSet says what goes wrong. The zero value is a good day.
type FaultSet struct {
	// NoCapacity are patterns of offerings that launches fail on; empty fields mean any.
	NoCapacity  []cloudprovider.OfferingRef
	LaunchDelay time.Duration
	LaunchError string
	// NeverRegister and Disappear are patterns of claim names. Disappear is for annotations; programs call
	// Provider.Kill.
	NeverRegister []string
	Disappear     []string
	Drift         cloudprovider.DriftReason
	NotReady      string
}

// Faults holds the FaultSet of a running program. All methods are safe for concurrent use.
type Faults struct {
	mu  sync.Mutex
	set FaultSet
}

// Set replaces what goes wrong from now on.
func (f *Faults) Set(set FaultSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set = set
}

// Get returns what goes wrong now.
func (f *Faults) Get() FaultSet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set
}

// ParseFaults reads the fault annotations among those given. An error names the annotation and what to write.
func ParseFaults(annotations map[string]string) (FaultSet, error) {
	var set FaultSet
	for key, text := range annotations {
		if !strings.HasPrefix(key, faultPrefix) {
			continue
		}
		if err := set.read(key, strings.TrimSpace(text)); err != nil {
			return FaultSet{}, fmt.Errorf("annotation %s: %w", key, err)
		}
	}
	return set, nil
}

func (s *FaultSet) read(key, text string) (err error) {
	switch key {
	case FaultNoCapacity:
		s.NoCapacity, err = offeringPatterns(text)
	case FaultLaunchDelay:
		s.LaunchDelay, err = time.ParseDuration(text)
		if err != nil || s.LaunchDelay < 0 {
			return fmt.Errorf("%q is not a duration; write one such as 5s", text)
		}
	case FaultLaunchError:
		s.LaunchError, err = notEmpty(text)
	case FaultNeverRegister:
		s.NeverRegister, err = namePatterns(text)
	case FaultDisappear:
		s.Disappear, err = namePatterns(text)
	case FaultDrift:
		s.Drift = cloudprovider.DriftReason(text)
		if errs := validation.IsCIdentifier(text); len(errs) > 0 {
			return fmt.Errorf("%q is not a reason; write a CamelCase word such as ImageDrift", text)
		}
	case FaultNotReady:
		s.NotReady, err = notEmpty(text)
	default:
		return fmt.Errorf("there is no such fault; use one of %s%s", faultPrefix,
			"{no-capacity,launch-delay,launch-error,never-register,disappear,drift,not-ready}")
	}
	return err
}

func notEmpty(text string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("it is empty; write the message, or remove the annotation")
	}
	return text, nil
}

func offeringPatterns(text string) ([]cloudprovider.OfferingRef, error) {
	var out []cloudprovider.OfferingRef
	for _, item := range strings.Split(text, ",") {
		parts := strings.Split(strings.TrimSpace(item), ":")
		if parts[0] == "" || len(parts) > 3 {
			return nil, fmt.Errorf("%q is not an offering; write type:zone:capacity-type, such as "+
				"m5.large:us-west-2a:spot or *:*:spot", item)
		}
		for _, part := range parts {
			if err := pattern(part); err != nil {
				return nil, err
			}
		}
		parts = append(parts, "", "")
		out = append(out, cloudprovider.OfferingRef{Type: parts[0], Zone: parts[1], CapacityType: parts[2]})
	}
	return out, nil
}

func namePatterns(text string) ([]string, error) {
	switch text {
	case "true":
		return []string{"*"}, nil
	case "false":
		return nil, nil
	case "":
		return nil, fmt.Errorf("it is empty; write true, or names of NodeClaims such as default-*")
	}
	var out []string
	for _, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		if err := pattern(item); err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func pattern(text string) error {
	if _, err := path.Match(text, ""); err != nil {
		return fmt.Errorf("%q is not a pattern; use only * and ? as wildcards", text)
	}
	return nil
}

// with returns the faults of both sets; where both have a single value, the other's wins.
func (s FaultSet) with(other FaultSet) FaultSet {
	s.NoCapacity = slices.Concat(s.NoCapacity, other.NoCapacity)
	s.NeverRegister = slices.Concat(s.NeverRegister, other.NeverRegister)
	s.Disappear = slices.Concat(s.Disappear, other.Disappear)
	s.LaunchDelay = max(s.LaunchDelay, other.LaunchDelay)
	if other.LaunchError != "" {
		s.LaunchError = other.LaunchError
	}
	if other.Drift != "" {
		s.Drift = other.Drift
	}
	if other.NotReady != "" {
		s.NotReady = other.NotReady
	}
	return s
}

// refuses tells whether the cloud has no capacity for the offering.
func (s *FaultSet) refuses(o cloudprovider.OfferingRef) bool {
	return slices.ContainsFunc(s.NoCapacity, func(p cloudprovider.OfferingRef) bool {
		return matches(p.Type, o.Type) && matches(p.Zone, o.Zone) && matches(p.CapacityType, o.CapacityType)
	})
}

func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return pattern == "" || err == nil && ok
}
