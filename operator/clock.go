package operator

import (
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tenon-sh/tenon/internal/ingest/apiserver"
)

// newClock makes the clock that plans go by. If the API server's is set while we run, this replica ends and begins
// anew: all that it remembers goes by the time before.
func newClock(lost func(error)) *apiserver.ServerClock {
	clock := apiserver.NewServerClock()
	clock.Stepped = func(by time.Duration) {
		lost(fmt.Errorf("the API server's clock was set by %s, or another API server has another time: this replica "+
			"ends, to begin anew by that time", by.Round(time.Second)))
	}
	return clock
}

// settle finds out what time it is at the API server.
func settle(mgr manager.Manager, clock *apiserver.ServerClock) error {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("preparing to ask the API server what time it is: %w", err)
	}
	err = clock.Settle(func() error {
		_, err := api.ServerVersion()
		return err
	})
	if err != nil {
		return err
	}
	if off := time.Since(clock.Now()); off.Abs() > time.Minute {
		mgr.GetLogger().Info("the clock of this machine and that of the API server differ; going by the API server's",
			"ahead", off.Round(time.Second).String())
	}
	return nil
}
