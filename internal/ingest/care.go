package ingest

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
)

// The annotations of a NodePool that say how its nodes are disrupted, and not for the contract's fields to say. They are
// additions to the contract.
const (
	ourPrefix = "tenon.sh/"

	dryRunAnnotation          = ourPrefix + "dry-run"
	minSavingAnnotation       = ourPrefix + "consolidation-min-saving"
	minSavingPerPodAnnotation = ourPrefix + "consolidation-min-saving-per-pod"
	evictionsAnnotation       = ourPrefix + "evictions-per-hour"
	driftStrategyAnnotation   = ourPrefix + "drift-strategy"
	driftWatchAnnotation      = ourPrefix + "drift-watch"
	softExpiryAnnotation      = ourPrefix + "soft-expiry"
	waitAnnotation            = ourPrefix + "consolidate-after-" // and the reason in small letters
)

// careReader reads one annotation into a pool's care; the error says what would be right.
type careReader func(text string, care *cluster.Care) error

func careReaders() map[string]careReader {
	out := map[string]careReader{
		dryRunAnnotation: func(text string, care *cluster.Care) error {
			on, err := strconv.ParseBool(text)
			care.DryRun = on
			return expect(err == nil, "true or false")
		},
		minSavingAnnotation: func(text string, care *cluster.Care) error {
			share, err := ReadShare(text)
			care.MinSaving = &share
			return err
		},
		minSavingPerPodAnnotation: func(text string, care *cluster.Care) error {
			dollars, err := strconv.ParseFloat(text, 64)
			care.MinSavingPerPod = &dollars
			return expect(err == nil && dollars >= 0 && !math.IsInf(dollars, 0) && !math.IsNaN(dollars), "dollars per hour of 0 or more, such as 0.001")
		},
		evictionsAnnotation: func(text string, care *cluster.Care) error {
			n, err := strconv.Atoi(text)
			care.EvictionsPerHour = &n
			return expect(err == nil && n >= 0, "a whole number such as 2, or 0 for no bound")
		},
		driftStrategyAnnotation: func(text string, care *cluster.Care) error {
			care.Canary = text == "canary"
			return expect(text == "canary" || text == "parallel", "canary or parallel")
		},
		driftWatchAnnotation: func(text string, care *cluster.Care) error { return positive(text, &care.Watch) },
		softExpiryAnnotation: func(text string, care *cluster.Care) error { return positive(text, &care.SoftExpiry) },
	}
	for _, reason := range []v1.DisruptionReason{v1.DisruptionReasonEmpty, v1.DisruptionReasonUnderutilized, v1.DisruptionReasonDrifted} {
		out[waitAnnotation+strings.ToLower(string(reason))] = func(text string, care *cluster.Care) error {
			wait, err := v1.ParseNillableDuration(text)
			if err != nil || wait.Duration != nil && *wait.Duration < 0 {
				return expect(false, "a duration of 0s or more, such as 30m, or Never")
			}
			if care.Waits == nil {
				care.Waits = make(map[string]cluster.Wait)
			}
			care.Waits[string(reason)] = waitOf(wait)
			return nil
		}
	}
	return out
}

// ReadShare reads a percentage as a share of one.
func ReadShare(text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(digits, 64)
	return n / 100, expect(percent && err == nil && n >= 0 && n < 100, "a percentage from 0% to less than 100%, such as 5%")
}

func positive(text string, into *time.Duration) error {
	d, err := time.ParseDuration(text)
	*into = d
	return expect(err == nil && d > 0, "a duration of more than 0, such as 10m")
}

func expect(ok bool, what string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("use %s", what)
}

// readCare reads the pool's annotations about disruption. While one of them can't be read nothing is done to the pool's nodes
// that could wait: it may have been the one that forbids it. The lock is held.
func (b *Book) readCare(p *cluster.Pool, pool *v1.NodePool) {
	b.forgetNote("NodePool", p.UID)
	readers := careReaders()
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(pool.Annotations)) {
		if read := readers[key]; read != nil {
			if err := read(pool.Annotations[key], &p.Care); err != nil {
				p.Problems = append(p.Problems, cluster.Problem{
					Field: fmt.Sprintf("metadata.annotations[%s]", key),
					Text:  fmt.Sprintf("%q can't be read; %v, or remove the annotation", pool.Annotations[key], err),
				})
				p.Care = cluster.Care{DryRun: true}
				return
			}
			continue
		}
		known := key == roundtrip.V1Beta1OnlyAnnotationKey || slices.ContainsFunc(timeouts(p), func(t timeout) bool { return t.annotation == key })
		if strings.HasPrefix(key, ourPrefix) && !known {
			unknown = append(unknown, key)
		}
	}
	if expire := pool.Spec.Template.Spec.ExpireAfter; !expire.IsNever() && p.Care.SoftExpiry >= *expire.Duration && p.Care.SoftExpiry > 0 {
		p.Problems = append(p.Problems, cluster.Problem{
			Field: fmt.Sprintf("metadata.annotations[%s]", softExpiryAnnotation),
			Text:  fmt.Sprintf("%s is not less than spec.template.spec.expireAfter (%s); use a shorter time, or remove the annotation", p.Care.SoftExpiry, expire),
		})
		p.Care.SoftExpiry = 0
	}
	if len(unknown) > 0 { // a newer version may know it, so the pool is used all the same
		note := p.Note("UnknownAnnotation", fmt.Sprintf("this version does not know %s, and does nothing about it; correct the name, or remove it", strings.Join(unknown, ", ")))
		note.Warning = true
		b.notes["NodePool"+p.UID] = note
	} else if pool.Annotations[v1beta1.KubeletAnnotationKey] != "" {
		note := p.Note("KubeletHasNoEffect", "spec.template.spec.kubelet of v1beta1 has no effect on the pool's nodes; move it to spec.kubelet of the EC2NodeClass, "+
			"and then remove the annotation "+v1beta1.KubeletAnnotationKey)
		note.Warning = true
		b.notes["NodePool"+p.UID] = note
	}
}

// readStamp computes the hash of the pool's template and reads the one that was written on the pool. The lock is held.
func (b *Book) readStamp(p *cluster.Pool, pool *v1.NodePool) {
	p.Stamped = cluster.Stamp{Hash: pool.Annotations[v1.NodePoolHashAnnotationKey], Version: pool.Annotations[v1.NodePoolHashVersionAnnotationKey]}
	stamp, err := stampOf(pool)
	if err != nil { // without a hash no node drifts because of the template
		p.Problems = append(p.Problems, cluster.Problem{Field: "spec.template", Text: err.Error()})
		return
	}
	p.Hash, p.HashVersion, p.Template.Stamp = stamp.Hash, stamp.Version, stamp
}
