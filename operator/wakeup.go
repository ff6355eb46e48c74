package operator

import "context"

// wakeup wakes one listener, once however often it is sent meanwhile.
type wakeup chan struct{}

func newWakeup() wakeup { return make(wakeup, 1) }

// send wakes the listener, at once if it listens, else when it listens next. It never waits.
func (w wakeup) send() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// answer calls do after each wake-up, until the context ends.
func (w wakeup) answer(do func()) func(context.Context) error {
	return func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-w:
				do()
			}
		}
	}
}
