package validate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func lifetimes(field string, grace *metav1.Duration, expire v1.NillableDuration) []Problem {
	var problems []Problem
	if grace != nil {
		problems = append(problems, notNegative(field+".terminationGracePeriod", grace.Duration)...)
	}
	if !expire.IsNever() {
		problems = append(problems, notNegative(field+".expireAfter", *expire.Duration)...)
	}
	return problems
}

func notNegative(field string, d time.Duration) []Problem {
	if d >= 0 {
		return nil
	}
	return []Problem{{Field: field, Value: d.String(), Why: "is negative", Fix: "use 0s or more"}}
}

func disruption(field string, d v1.Disruption) []Problem {
	var problems []Problem
	if !d.ConsolidateAfter.IsNever() {
		problems = notNegative(field+".consolidateAfter", *d.ConsolidateAfter.Duration)
	}
	switch d.ConsolidationPolicy {
	case "", v1.ConsolidationPolicyWhenEmpty, v1.ConsolidationPolicyWhenEmptyOrUnderutilized,
		v1.ConsolidationPolicyBalanced:
	default:
		problems = append(problems, Problem{
			Field: field + ".consolidationPolicy",
			Value: string(d.ConsolidationPolicy),
			Why:   "is not a policy",
			Fix:   "use WhenEmpty, WhenEmptyOrUnderutilized or Balanced",
		})
	}
	for i, b := range d.Budgets {
		problems = append(problems, budget(fmt.Sprintf("%s.budgets[%d]", field, i), b)...)
	}
	return problems
}

func budget(at string, b v1.Budget) []Problem {
	var problems []Problem
	if !isBudgetSize(b.Nodes) {
		problems = append(problems, Problem{
			Field: at + ".nodes",
			Value: b.Nodes,
			Why:   "is neither a number of nodes nor a percentage",
			Fix:   "use a number such as 5, or 0% to 100%",
		})
	}
	for i, reason := range b.Reasons {
		switch reason {
		case v1.DisruptionReasonUnderutilized, v1.DisruptionReasonEmpty, v1.DisruptionReasonDrifted,
			v1.DisruptionReasonUnhealthy:
		default:
			problems = append(problems, Problem{
				Field: fmt.Sprintf("%s.reasons[%d]", at, i),
				Value: string(reason),
				Why:   "is not a reason for disruption",
				Fix:   "use Underutilized, Empty, Drifted or Unhealthy",
			})
		}
	}
	return append(problems, window(at, b)...)
}

// window checks when a budget holds: always, or for the duration after each moment of the schedule.
func window(at string, b v1.Budget) []Problem {
	if (b.Schedule == nil) != (b.Duration == nil) {
		return []Problem{{
			Field: at, Why: "has only one of schedule and duration", Fix: "set both, or neither for a budget that " +
				"always holds",
		}}
	}
	if b.Schedule == nil {
		return nil
	}
	problems := schedule(at+".schedule", *b.Schedule)
	return append(problems, notNegative(at+".duration", b.Duration.Duration)...)
}

// schedule checks that the text can be read as a schedule and that its moment ever comes. A parser can read more than
// the contract has (@every); that is refused by name, so that the fix is clear.
func schedule(field, text string) []Problem {
	bad := func(why, fix string) []Problem {
		return []Problem{{Field: field, Value: text, Why: why, Fix: fix}}
	}
	const example = `five cron fields, such as "0 9 * * mon-fri", or one of ` +
		"@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
	fields, _, err := ReadSchedule(text)
	switch {
	case err != nil:
		return bad(err.Error(),
			`name an IANA time zone, such as "CRON_TZ=Europe/Berlin 0 9 * * mon-fri", or none for UTC`)
	case strings.HasPrefix(fields, "@every"):
		return bad("is an interval, not a schedule", "use "+example)
	}
	parsed, err := cron.ParseStandard("TZ=UTC " + fields)
	if err != nil {
		return bad("is not a schedule: "+err.Error(), "use "+example)
	}
	// The parser searches five years ahead, so any day that exists is found from any starting point.
	if parsed.Next(time.Unix(0, 0).UTC()).IsZero() {
		return bad("names a day that never comes", "correct the day or the month")
	}
	return nil
}

// ReadSchedule takes a schedule apart: its fields, and the time zone that it is written for. That goes beyond the
// contract, which knows UTC only: CRON_TZ=<IANA zone> before the fields names another.
func ReadSchedule(text string) (fields string, zone *time.Location, err error) {
	first, rest := strings.TrimSpace(text), ""
	if i := strings.IndexAny(first, " \t"); i >= 0 {
		first, rest = first[:i], first[i:]
	}
	name, zoned := strings.CutPrefix(first, "CRON_TZ=")
	if !zoned {
		if strings.Contains(text, "TZ=") {
			return "", nil, errors.New("names a time zone in another way than by CRON_TZ= before the fields")
		}
		return text, time.UTC, nil
	}
	if name == "" || name == "Local" || strings.Contains(rest, "TZ=") {
		return "", nil, errors.New("names no time zone after CRON_TZ=, or two")
	}
	if zone, err = time.LoadLocation(name); err != nil {
		return "", nil, fmt.Errorf("names the time zone %q, which is not in the IANA database", name)
	}
	return strings.TrimSpace(rest), zone, nil
}

// isBudgetSize tells whether the text is a number of nodes or a percentage from 0% to 100%.
func isBudgetSize(text string) bool {
	n, percent, ok := ReadBudget(text)
	return ok && (!percent || n <= 100)
}

// ReadBudget reads how many nodes a budget allows, or which percentage of them. A number that is larger than any
// cluster is all of its nodes. It is false for what is neither.
func ReadBudget(text string) (n int, percent, ok bool) {
	digits, percent := strings.CutSuffix(text, "%")
	long, err := strconv.ParseUint(digits, 10, 31)
	if errors.Is(err, strconv.ErrRange) {
		err = nil // the largest number that there is room for
	}
	return int(long), percent, err == nil
}
