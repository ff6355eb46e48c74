package webhook

import (
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"
)

// contained makes a panic in background work an error, once it is deferred. Were it to end the process, the same object
// would end it again after the restart.
func contained(log logr.Logger, doing string, err *error) {
	if broken := recover(); broken != nil {
		*err = fmt.Errorf("%s failed, which is a mistake in Tenon, please report it: %v", doing, broken)
		log.Error(*err, "background work of the webhook failed; the webhook still answers", "stack",
			string(debug.Stack()))
	}
}
