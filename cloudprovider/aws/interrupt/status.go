package interrupt

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

const (
	// lookEvery is how often EC2 is asked, lookLimit how long that may take.
	lookEvery, lookLimit = time.Minute, 50 * time.Second
	// impairedFor is how long a check must have failed before it is believed.
	impairedFor = 2 * time.Minute
)

// What of an instance's status is unhealthy.
const (
	instanceStatus = "InstanceStatus"
	systemStatus   = "SystemStatus"
	eventStatus    = "EventStatus"
)

// check names one check of one instance.
type check struct{ instance, category string }

// filters ask for one category of trouble each: EC2 takes only those together that must hold together.
func filters() map[string]ec2types.Filter {
	impaired := []string{string(ec2types.SummaryStatusImpaired)}
	return map[string]ec2types.Filter{
		instanceStatus: {Name: aws.String("instance-status.status"), Values: impaired},
		systemStatus:   {Name: aws.String("system-status.status"), Values: impaired},
		eventStatus: {Name: aws.String("event.code"), Values: []string{
			string(ec2types.EventCodeInstanceReboot), string(ec2types.EventCodeSystemReboot),
			string(ec2types.EventCodeSystemMaintenance),
			string(ec2types.EventCodeInstanceRetirement), string(ec2types.EventCodeInstanceStop),
		}},
	}
}

// examine asks EC2 about its instances until the context ends.
func (w *Watcher) examine(ctx context.Context) {
	told := ""
	for {
		err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != told:
			told = err.Error()
			log.FromContext(ctx).Error(err, "it is not known which instances are impaired; it is asked again in a "+
				"minute")
		case err == nil && told != "":
			told = ""
			log.FromContext(ctx).Info("it is known again which instances are impaired")
		}
		if !w.pause(ctx, lookEvery) {
			return
		}
	}
}

// look asks once. What one question finds counts, whatever becomes of the others.
func (w *Watcher) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	claims, err := w.claims(ctx)
	if err != nil {
		return err
	}
	var trouble error
	for category, filter := range filters() {
		found, err := w.ask(ctx, filter)
		if err != nil {
			trouble = errors.Join(trouble, fault.Explain("asking EC2 which instances are impaired", err))
			continue
		}
		trouble = errors.Join(trouble, w.diagnose(ctx, category, found, claims))
	}
	return trouble
}

// ask finds the instances that the filter is about, page by page.
func (w *Watcher) ask(ctx context.Context, filter ec2types.Filter) ([]ec2types.InstanceStatus, error) {
	var out []ec2types.InstanceStatus
	pages := ec2.NewDescribeInstanceStatusPaginator(w.EC2,
		&ec2.DescribeInstanceStatusInput{Filters: []ec2types.Filter{filter}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, page.InstanceStatuses...)
	}
	return out, nil
}

// diagnose writes down what was found about instances of ours. An instance is counted once for as long as it is unwell.
func (w *Watcher) diagnose(ctx context.Context, category string, found []ec2types.InstanceStatus,
	claims map[string]*claim) error {
	var trouble error
	now := make(map[check]bool)
	for i := range found {
		id := aws.ToString(found[i].InstanceId)
		c := claims[id]
		n, unwell := judge(category, &found[i], w.Now())
		if c == nil || !unwell {
			continue
		}
		now[check{id, category}] = true
		trouble = errors.Join(trouble, w.apply(ctx, c, &n))
	}
	for k := range w.failing { // only one look at a time touches it
		if k.category == category && !now[k] {
			delete(w.failing, k)
		}
	}
	for k := range now {
		if !w.failing[k] {
			w.failing[k] = true
			w.metrics.unhealthy.WithLabelValues(category).Inc()
		}
	}
	return trouble
}

// judge says what a status comes to; unwell is false if nothing does.
func judge(category string, s *ec2types.InstanceStatus, now time.Time) (n notice, unwell bool) {
	n = notice{at: now, reason: "InstanceUnhealthy"}
	switch category {
	case eventStatus:
		unwell = planned(&n, s.Events, now)
		n.Kind = cloudprovider.EventStatus
		return n, unwell
	case instanceStatus:
		unwell = failed(s.InstanceStatus, now)
		n.Kind = cloudprovider.InstanceStatus
		n.text = "EC2's check of the instance has failed for two minutes or more"
	case systemStatus:
		unwell = failed(s.SystemStatus, now)
		n.Kind = cloudprovider.SystemStatus
		n.text = "EC2's check of the instance's host has failed for two minutes or more"
	}
	n.Force = true
	return n, unwell
}

// failed reports whether some check has failed for long enough.
func failed(s *ec2types.InstanceStatusSummary, now time.Time) bool {
	if s == nil {
		return false
	}
	for _, d := range s.Details {
		if d.Status == ec2types.StatusTypeFailed && d.ImpairedSince != nil &&
			!now.Before(d.ImpairedSince.Add(impairedFor)) {
			return true
		}
	}
	return false
}

// planned finds the first change that is still ahead. For a week EC2 shows those that are over, too.
func planned(n *notice, events []ec2types.InstanceStatusEvent, now time.Time) bool {
	found := false
	var first ec2types.InstanceStatusEvent
	for _, e := range events {
		text := strings.ToLower(aws.ToString(e.Description))
		if strings.HasPrefix(text, "[completed]") || strings.HasPrefix(text, "[canceled]") {
			continue
		}
		if !found || aws.ToTime(e.NotBefore).Before(aws.ToTime(first.NotBefore)) {
			first, found = e, true
		}
	}
	if found {
		n.plan(string(first.Code), aws.ToTime(first.NotBefore), now)
	}
	return found
}
