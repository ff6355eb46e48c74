package aws_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// The policy that the reference gives for the interruption queue lets EventBridge write, for rules of the same account,
// and nobody else.
func TestQueuePolicyLetsOnlyEventBridgeWrite(t *testing.T) {
	data, err := os.ReadFile("../../docs/reference/aws/queue-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Statement []struct {
			Sid, Effect      string
			Principal        any
			Action, Resource list
			Condition        map[string]map[string]list
		}
	}
	if err := json.Unmarshal(data, &policy); err != nil {
		t.Fatal(err)
	}
	refused := false
	for _, s := range policy.Statement {
		if !slices.Equal(s.Resource, list{"arn:${PARTITION}:sqs:${REGION}:${ACCOUNT_ID}:${QUEUE_NAME}"}) {
			t.Errorf("%s is about %q", s.Sid, s.Resource)
		}
		if s.Effect == "Deny" {
			refused = refused || slices.Equal(s.Condition["Bool"]["aws:SecureTransport"], list{"false"})
			continue
		}
		who, _ := s.Principal.(map[string]any)
		if len(who) != 1 || who["Service"] != "events.amazonaws.com" || !slices.Equal(s.Action,
			list{"sqs:SendMessage"}) ||
			!slices.Equal(s.Condition["StringEquals"]["aws:SourceAccount"], list{"${ACCOUNT_ID}"}) {
			t.Errorf("%s allows %v for %v", s.Sid, s.Action, s.Principal)
		}
	}
	if !refused || len(policy.Statement) != 2 {
		t.Errorf("requests without encryption are not refused, or there are %d statements", len(policy.Statement))
	}
}
