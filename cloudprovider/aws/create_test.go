package aws

import (
	"errors"
	"testing"

	"github.com/tenon-sh/tenon/cloudprovider"
)

// Whoever asks for the same claim at the same time waits for one answer, and may change what it gets; later there is
// another call.
func TestCallsForOneClaim(t *testing.T) {
	f := &createCalls{}
	call, first := f.join("a")
	same, second := f.join("a")
	if other, alone := f.join("b"); !first || second || call != same || other == call || !alone {
		t.Fatalf("%t %t %t", first, second, alone)
	}
	made := &cloudprovider.Instance{ProviderID: "i-1", Labels: map[string]string{}}
	f.end("a", call, made, nil)
	made.Labels["changed"] = "yes"
	<-same.done
	if same.instance == made || same.instance.ProviderID != "i-1" || len(same.instance.Labels) != 0 || same.err != nil {
		t.Errorf("%+v, %v", same.instance, same.err)
	}
	next, first := f.join("a")
	if next == call || !first {
		t.Error("a call that is over is joined")
	}
	refused := errors.New("refused")
	if f.end("a", next, nil, refused); next.instance != nil || next.err != refused {
		t.Errorf("%+v, %v", next.instance, next.err)
	}
}
