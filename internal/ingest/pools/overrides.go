package pools

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1beta1"
	"github.com/tenon-sh/tenon/api/roundtrip"
	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/ingest/decode"
	"github.com/tenon-sh/tenon/internal/reason"
)

// The annotations of a NodePool that say how its nodes are disrupted, and not for the contract's fields to say. They
// are additions to the contract.
const (
	ourPrefix = "tenon.sh/"

	DryRunAnnotation          = ourPrefix + "dry-run"
	MinSavingAnnotation       = ourPrefix + "consolidation-min-saving"
	MinSavingPerPodAnnotation = ourPrefix + "consolidation-min-saving-per-pod"
	EvictionsAnnotation       = ourPrefix + "evictions-per-hour"
	DriftStrategyAnnotation   = ourPrefix + "drift-strategy"
	DriftWatchAnnotation      = ourPrefix + "drift-watch"
	SoftExpiryAnnotation      = ourPrefix + "soft-expiry"
	waitAnnotation            = ourPrefix + "consolidate-after-" // and the reason in small letters
)

// overrideReader reads one annotation into a pool's care; the error says what would be right.
type overrideReader func(text string, overrides *cluster.DisruptionOverrides) error

func overrideReaders() map[string]overrideReader {
	out := map[string]overrideReader{
		DryRunAnnotation: func(text string, overrides *cluster.DisruptionOverrides) error {
			on, err := strconv.ParseBool(text)
			overrides.DryRun = on
			return expectValue(err == nil, "true or false")
		},
		MinSavingAnnotation: func(text string, overrides *cluster.DisruptionOverrides) error {
			share, err := ReadShare(text)
			overrides.MinSaving = &share
			return err
		},
		MinSavingPerPodAnnotation: func(text string, overrides *cluster.DisruptionOverrides) error {
			dollars, err := strconv.ParseFloat(text, 64)
			overrides.MinSavingPerPod = &dollars
			return expectValue(err == nil && dollars >= 0 && !math.IsInf(dollars, 0) && !math.IsNaN(dollars),
				"dollars per hour of 0 or more, such as 0.001")
		},
		EvictionsAnnotation: func(text string, overrides *cluster.DisruptionOverrides) error {
			n, err := strconv.Atoi(text)
			overrides.EvictionsPerHour = &n
			return expectValue(err == nil && n >= 0, "a whole number such as 2, or 0 for no bound")
		},
		DriftStrategyAnnotation: func(text string, overrides *cluster.DisruptionOverrides) error {
			overrides.Canary = text == "canary"
			return expectValue(text == "canary" || text == "parallel", "canary or parallel")
		},
		DriftWatchAnnotation: func(text string, overrides *cluster.DisruptionOverrides) error {
			return readPositive(text, &overrides.CanaryWatch)
		},
		SoftExpiryAnnotation: func(text string, overrides *cluster.DisruptionOverrides) error {
			return readPositive(text, &overrides.SoftExpiry)
		},
	}
	for _, reason := range []v1.DisruptionReason{v1.DisruptionReasonEmpty, v1.DisruptionReasonUnderutilized,
		v1.DisruptionReasonDrifted} {
		out[waitAnnotation+strings.ToLower(string(reason))] = func(text string,
			overrides *cluster.DisruptionOverrides) error {
			wait, err := v1.ParseNillableDuration(text)
			if err != nil || wait.Duration != nil && *wait.Duration < 0 {
				return expectValue(false, "a duration of 0s or more, such as 30m, or Never")
			}
			if overrides.QuietPeriods == nil {
				overrides.QuietPeriods = make(map[string]cluster.NillableDuration)
			}
			overrides.QuietPeriods[string(reason)] = decode.WaitOf(wait)
			return nil
		}
	}
	return out
}

// ReadShare reads a percentage as a share of one.
func ReadShare(text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(digits, 64)
	return n / 100, expectValue(percent && err == nil && n >= 0 && n < 100, "a percentage from 0% to less than 100%, "+
		"such as 5%")
}

func readPositive(text string, into *time.Duration) error {
	d, err := time.ParseDuration(text)
	*into = d
	return expectValue(err == nil && d > 0, "a duration of more than 0, such as 10m")
}

func expectValue(ok bool, what string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("use %s", what)
}

// readOverrides reads the pool's annotations about disruption, and returns what is to be told about them, if anything.
// While one of them can't be read nothing is done to the pool's nodes that could wait: it may have been the one that
// forbids it.
func readOverrides(p *cluster.Pool, pool *v1.NodePool) *cluster.Note {
	readers := overrideReaders()
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(pool.Annotations)) {
		if read := readers[key]; read != nil {
			if err := read(pool.Annotations[key], &p.Overrides); err != nil {
				p.Problems = append(p.Problems, cluster.Problem{
					Field: fmt.Sprintf("metadata.annotations[%s]", key),
					Text:  fmt.Sprintf("%q can't be read; %v, or remove the annotation", pool.Annotations[key], err),
				})
				p.Overrides = cluster.DisruptionOverrides{DryRun: true}
				return nil
			}
			continue
		}
		known := key == roundtrip.V1Beta1OnlyAnnotationKey || slices.ContainsFunc(timeouts(p), func(t timeout) bool {
			return t.annotation == key
		})
		if strings.HasPrefix(key, ourPrefix) && !known {
			unknown = append(unknown, key)
		}
	}
	checkSoftExpiry(p, pool.Spec.Template.Spec.ExpireAfter)
	note := cluster.Note{}
	switch {
	case len(unknown) > 0: // a newer version may know it, so the pool is used all the same
		note = p.Note("UnknownAnnotation", reason.Said(fmt.Sprintf("this version does not know %s, and does nothing "+
			"about it; "+
			"correct the name, or remove it", strings.Join(unknown, ", "))))
	case pool.Annotations[v1beta1.KubeletAnnotationKey] != "":
		note = p.Note("KubeletHasNoEffect", reason.Said("spec.template.spec.kubelet of v1beta1 has no effect on the "+
			"pool's "+
			"nodes; move it to spec.kubelet of the EC2NodeClass, and then remove the annotation "+
			v1beta1.KubeletAnnotationKey))
	default:
		return nil
	}
	note.Warning = true
	return &note
}

// checkSoftExpiry ignores a soft expiry that is not before the pool's expiry.
func checkSoftExpiry(p *cluster.Pool, expire v1.NillableDuration) {
	if !expire.IsNever() && p.Overrides.SoftExpiry >= *expire.Duration &&
		p.Overrides.SoftExpiry > 0 {
		p.Problems = append(p.Problems, cluster.Problem{
			Field: fmt.Sprintf("metadata.annotations[%s]", SoftExpiryAnnotation),
			Text: fmt.Sprintf("%s is not less than spec.template.spec.expireAfter (%s); use a shorter time, or "+
				"remove the annotation", p.Overrides.SoftExpiry, expire),
		})
		p.Overrides.SoftExpiry = 0
	}
}

// readTemplateHash computes the hash of the pool's template and reads the one that was written on the pool.
func readTemplateHash(p *cluster.Pool, pool *v1.NodePool) {
	p.WrittenHash = cluster.TemplateHash{Hash: pool.Annotations[v1.NodePoolHashAnnotationKey],
		Version: pool.Annotations[v1.NodePoolHashVersionAnnotationKey]}
	stamp, err := templateHashOf(pool)
	if err != nil { // without a hash no node drifts because of the template
		p.Problems = append(p.Problems, cluster.Problem{Field: "spec.template", Text: err.Error()})
		return
	}
	p.Hash, p.HashVersion, p.Template.Hash = stamp.Hash, stamp.Version, stamp
}
